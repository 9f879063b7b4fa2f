#include "grammar/text_slice.h"

#include <algorithm>
#include <utility>

#include "grammar/utf8.h"

namespace deepinfer::grammar {

TextSlice::TextSlice(const CharSet& chars, std::span<const TokenTrie::Entry> entries,
                     size_t mask_words)
    : masks_(kMaxListed + 1, std::vector<uint32_t>(mask_words, 0)) {
  Budget budget{Limits()};
  character_ = EncodeUtf8(SetDfa(chars), budget).value();  // far below the limits
  for (const Edge& edge : character_.edges(0)) first_bytes_.AddRange(edge.first, edge.last);
  std::vector<TokenTrie::Entry> rest;
  for (const TokenTrie::Entry& entry : entries) {
    const uint32_t count = CountChars(chars, entry.bytes);
    if (count == 0) {
      rest.push_back(entry);
      continue;
    }
    longest_ = std::max(longest_, count);
    if (count > kMaxListed) long_tokens_.push_back({count, entry.token});
    for (uint32_t n = std::min(count, kMaxListed); n <= kMaxListed; ++n) {
      masks_[n][static_cast<uint32_t>(entry.token) / 32] |= uint32_t{1} << (entry.token & 31);
    }
  }
  std::sort(long_tokens_.begin(), long_tokens_.end(),
            [](const LongToken& a, const LongToken& b) { return a.chars < b.chars; });
  rest_ = TokenTrie(std::move(rest));
}

uint32_t TextSlice::CountChars(const CharSet& chars, std::string_view bytes) const {
  uint32_t count = 0;
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Char c = DecodeUtf8(bytes, pos);
    if (c.length == 0 || !chars.Contains(c.code_point)) return 0;
    pos += c.length;
    ++count;
  }
  return count;
}

void TextSlice::CopyMask(uint64_t chars, std::span<uint32_t> mask) const {
  const auto& listed = masks_[std::min<uint64_t>(chars, kMaxListed)];
  std::copy(listed.begin(), listed.end(), mask.begin());
  if (chars < kMaxListed) return;
  for (auto it = long_tokens_.rbegin(); it != long_tokens_.rend() && it->chars > chars; ++it) {
    mask[static_cast<uint32_t>(it->token) / 32] &= ~(uint32_t{1} << (it->token & 31));
  }
}

size_t TextSlice::bytes_used() const {
  return sizeof(*this) + rest_.bytes_used() + masks_.size() * masks_[0].size() * sizeof(uint32_t) +
         long_tokens_.capacity() * sizeof(LongToken);
}

}  // namespace deepinfer::grammar
