// Classes of characters whose tokens are accepted in bulk.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/byte_set.h"
#include "grammar/char_set.h"
#include "grammar/token_trie.h"

namespace deepinfer::grammar {

// The tokens of a vocabulary that consist of whole characters of one class. An automaton that takes
// any text of up to n such characters accepts all of them with at most n characters without a walk;
// only `rest`, the other tokens, remains to be walked. Immutable.
class TextSlice {
 public:
  // `entries` are all tokens of the vocabulary, whose masks have `mask_words` words.
  TextSlice(const CharSet& chars, std::span<const TokenTrie::Entry> entries, size_t mask_words);

  // One character of the class in UTF-8.
  const Dfa& character() const { return character_; }
  const ByteSet& first_bytes() const { return first_bytes_; }
  // The most characters that a token of the slice has.
  uint32_t longest() const { return longest_; }
  const TokenTrie& rest() const { return rest_; }
  // Sets `mask` to the slice's tokens of at most `chars` characters.
  void CopyMask(uint64_t chars, std::span<uint32_t> mask) const;
  size_t bytes_used() const;

 private:
  static constexpr uint32_t kMaxListed = 32;
  struct LongToken {
    uint32_t chars;
    int32_t token;
  };

  // The number of characters if all are of the class, else 0.
  uint32_t CountChars(const CharSet& chars, std::string_view bytes) const;

  Dfa character_;
  ByteSet first_bytes_;
  uint32_t longest_ = 0;
  TokenTrie rest_;
  // [n]: tokens of at most n characters; the last one has every token of the slice.
  std::vector<std::vector<uint32_t>> masks_;
  std::vector<LongToken> long_tokens_;  // of more than kMaxListed characters, by length
};

}  // namespace deepinfer::grammar
