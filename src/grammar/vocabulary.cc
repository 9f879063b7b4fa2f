#include "grammar/vocabulary.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {

namespace {

// From wide to narrow; a state uses the first one that fits.
std::vector<CharSet> SliceClasses() {
  const CharSet plain =
      CharSet{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x9f}, {0x2028, 0x2029}};
  return {plain.Complement(), {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, {{'a', 'z'}}};
}

// Markers take the bytes that UTF-8 leaves free; a tokenizer's tokens of such bytes go unused.
Status SetMarkers(std::vector<std::string>& token_bytes, const std::vector<int32_t>& markers) {
  if (markers.empty()) return {};
  if (markers.size() > Vocabulary::kMaxMarkers) {
    return MakeError(ErrorCode::kInvalidArgument, "{} marker tokens, more than {}", markers.size(),
                     Vocabulary::kMaxMarkers);
  }
  for (std::string& bytes : token_bytes) {
    const bool free = std::any_of(bytes.begin(), bytes.end(),
                                  [](char byte) { return static_cast<uint8_t>(byte) >= 0xf8; });
    if (free) bytes.clear();
  }
  for (size_t i = 0; i < markers.size(); ++i) {
    if (markers[i] < 0 || static_cast<size_t>(markers[i]) >= token_bytes.size()) {
      return MakeError(ErrorCode::kInvalidArgument, "marker token {} is not in [0, {})", markers[i],
                       token_bytes.size());
    }
    token_bytes[static_cast<size_t>(markers[i])] = Vocabulary::MarkerByte(i);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Vocabulary>> Vocabulary::Create(
    std::vector<std::string> token_bytes, std::vector<int32_t> end_tokens,
    const std::vector<int32_t>& marker_tokens) {
  DI_RETURN_IF_ERROR(SetMarkers(token_bytes, marker_tokens));
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
  std::vector<TokenTrie::Entry> all;
  for (int32_t token = 0; token < vocabulary->size(); ++token) {
    const std::string_view bytes = vocabulary->token_bytes(token);
    if (bytes.empty() || vocabulary->IsEndToken(token)) continue;
    if (bytes.size() > kMaxTokenBytes) {
      return MakeError(ErrorCode::kInvalidArgument, "token {} has {} bytes, more than {}", token,
                       bytes.size(), kMaxTokenBytes);
    }
    all.push_back({bytes, token});
    if (bytes.size() == 1) vocabulary->single_bytes_.Add(static_cast<uint8_t>(bytes[0]));
  }
  for (const CharSet& chars : SliceClasses()) {
    vocabulary->slices_.emplace_back(chars, all, vocabulary->mask_words());
  }
  vocabulary->trie_ = TokenTrie(std::move(all));
  return std::shared_ptr<const Vocabulary>(std::move(vocabulary));
}

bool Vocabulary::IsEndToken(int32_t token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

size_t Vocabulary::bytes_used() const {
  size_t bytes = sizeof(*this) + trie_.bytes_used();
  for (const TextSlice& slice : slices_) bytes += slice.bytes_used();
  for (const std::string& token : token_bytes_) {
    bytes += sizeof(token) + (token.capacity() > 15 ? token.capacity() : 0);
  }
  return bytes;
}

}  // namespace deepinfer::grammar
