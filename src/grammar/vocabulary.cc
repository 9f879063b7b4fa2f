#include "grammar/vocabulary.h"

#include <algorithm>
#include <utility>

#include "grammar/utf8.h"

namespace deepinfer::grammar {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.bytes, a.token) < std::pair(b.bytes, b.token);
  });
  nodes_.push_back({0, 0, 0, 0});
  std::vector<uint32_t> path = {0};  // the nodes of the last entry's prefixes
  std::string_view last;
  for (const Entry& entry : entries) {
    size_t shared = 0;
    const size_t limit = std::min(last.size(), entry.bytes.size());
    while (shared < limit && last[shared] == entry.bytes[shared]) ++shared;
    while (path.size() > shared + 1) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
    for (size_t i = shared; i < entry.bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), static_cast<uint16_t>(i + 1),
                        static_cast<uint8_t>(entry.bytes[i])});
    }
    tokens_.push_back(entry.token);
    max_depth_ = std::max(max_depth_, static_cast<uint32_t>(entry.bytes.size()));
    last = entry.bytes;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(
      {static_cast<uint32_t>(nodes_.size()) + 1, static_cast<uint32_t>(tokens_.size()), 0, 0});
  nodes_.shrink_to_fit();
  tokens_.shrink_to_fit();
}

uint32_t TokenTrie::Child(uint32_t index, uint8_t byte) const {
  for (uint32_t child = index + 1; child < nodes_[index].end; child = nodes_[child].end) {
    if (nodes_[child].byte == byte) return child;
  }
  return 0;
}

uint32_t PlainChars(std::string_view bytes) {
  uint32_t chars = 0;
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Char c = DecodeUtf8(bytes, pos);
    if (c.length == 0 || c.code_point < 0x20 || c.code_point == '"' || c.code_point == '\\') {
      return 0;
    }
    pos += c.length;
    ++chars;
  }
  return chars;
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::Create(std::vector<std::string> token_bytes,
                                                             std::vector<int32_t> end_tokens) {
  auto vocabulary = std::shared_ptr<Vocabulary>(new Vocabulary());
  vocabulary->token_bytes_ = std::move(token_bytes);
  for (const int32_t token : end_tokens) {
    if (token < 0 || token >= vocabulary->size()) {
      return MakeError(ErrorCode::kInvalidArgument, "end token {} is not in [0, {})", token,
                       vocabulary->size());
    }
  }
  std::sort(end_tokens.begin(), end_tokens.end());
  vocabulary->end_tokens_ = std::move(end_tokens);
  vocabulary->plain_masks_.assign(kMaxPlainChars + 1,
                                  std::vector<uint32_t>(vocabulary->mask_words(), 0));
  std::vector<TokenTrie::Entry> all;
  std::vector<TokenTrie::Entry> rest;
  for (int32_t token = 0; token < vocabulary->size(); ++token) {
    const std::string_view bytes = vocabulary->token_bytes(token);
    if (bytes.empty() || vocabulary->IsEndToken(token)) continue;
    if (bytes.size() > kMaxTokenBytes) {
      return MakeError(ErrorCode::kInvalidArgument, "token {} has {} bytes, more than {}", token,
                       bytes.size(), kMaxTokenBytes);
    }
    all.push_back({bytes, token});
    if (bytes.size() == 1) vocabulary->single_bytes_.Add(static_cast<uint8_t>(bytes[0]));
    const uint32_t chars = PlainChars(bytes);
    if (chars == 0) {
      rest.push_back({bytes, token});
      continue;
    }
    if (chars > kMaxPlainChars) vocabulary->long_plain_tokens_.push_back({chars, token});
    const uint32_t first_mask = std::min(chars, kMaxPlainChars);
    const uint32_t bit = uint32_t{1} << (token & 31);
    // Masks of fewer characters than the token has go without it; the last one has every token.
    for (uint32_t n = first_mask; n <= kMaxPlainChars; ++n) {
      if (n == kMaxPlainChars || chars <= n) {
        vocabulary->plain_masks_[n][static_cast<size_t>(token) / 32] |= bit;
      }
    }
  }
  std::sort(vocabulary->long_plain_tokens_.begin(), vocabulary->long_plain_tokens_.end(),
            [](const LongToken& a, const LongToken& b) { return a.chars < b.chars; });
  vocabulary->trie_ = TokenTrie(std::move(all));
  vocabulary->rest_trie_ = TokenTrie(std::move(rest));
  return std::shared_ptr<const Vocabulary>(std::move(vocabulary));
}

std::span<const uint32_t> Vocabulary::plain_mask(uint32_t chars) const {
  return plain_masks_[std::min(chars, kMaxPlainChars)];
}

bool Vocabulary::IsEndToken(int32_t token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

size_t Vocabulary::bytes_used() const {
  size_t bytes = sizeof(*this) + trie_.bytes_used() + rest_trie_.bytes_used() +
                 plain_masks_.size() * mask_words() * sizeof(uint32_t);
  for (const std::string& token : token_bytes_) {
    bytes += sizeof(token) + (token.capacity() > 15 ? token.capacity() : 0);
  }
  return bytes;
}

}  // namespace deepinfer::grammar
