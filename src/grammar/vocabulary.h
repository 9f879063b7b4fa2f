// The tokens of one tokenizer as byte strings, arranged for masks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/byte_set.h"
#include "grammar/text_slice.h"
#include "grammar/token_trie.h"

namespace deepinfer::grammar {

// Immutable; built once a tokenizer (some 100 ms for 129,280 tokens) and shared by all grammars.
class Vocabulary {
 public:
  static constexpr size_t kMaxTokenBytes = 4096;

  // token_bytes[id]: what the token stands for. An empty string: a token that no grammar allows
  // (control tokens, unused ids). `end_tokens` are allowed where the text may end, and nowhere
  // else, whatever their bytes. `marker_tokens`, at most eight, are control tokens that a grammar
  // may ask for: token i stands for MarkerByte(i), which no UTF-8 text holds and no other token
  // may have. kInvalidArgument for an id out of range or a token that is too long.
  static Result<std::shared_ptr<const Vocabulary>> Create(
      std::vector<std::string> token_bytes, std::vector<int32_t> end_tokens,
      const std::vector<int32_t>& marker_tokens = {});

  static constexpr size_t kMaxMarkers = 8;
  static constexpr char MarkerByte(size_t index) { return static_cast<char>(0xf8 + index); }

  int32_t size() const { return static_cast<int32_t>(token_bytes_.size()); }
  // 32-bit words of a mask; bit id % 32 of word id / 32.
  size_t mask_words() const { return (token_bytes_.size() + 31) / 32; }
  std::string_view token_bytes(int32_t token) const {
    return token_bytes_[static_cast<size_t>(token)];
  }
  const std::vector<int32_t>& end_tokens() const { return end_tokens_; }
  bool IsEndToken(int32_t token) const;
  // Bytes that are a token by themselves. A grammar may only use these: then whatever begins can
  // be completed.
  const ByteSet& single_bytes() const { return single_bytes_; }

  const TokenTrie& trie() const { return trie_; }

  // Classes of characters, the widest first. The first one is text without controls, quotes and
  // backslashes: what strings of JSON or prose may hold anywhere, and the bulk of any vocabulary.
  std::span<const TextSlice> slices() const { return slices_; }

  // The largest number of bytes of any token.
  uint32_t max_token_bytes() const { return trie_.max_depth(); }
  size_t bytes_used() const;

 private:
  Vocabulary() = default;

  std::vector<std::string> token_bytes_;
  std::vector<int32_t> end_tokens_;
  ByteSet single_bytes_;
  TokenTrie trie_;
  std::vector<TextSlice> slices_;
};

}  // namespace deepinfer::grammar
