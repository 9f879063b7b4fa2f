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

namespace deepinfer::grammar {

// All tokens of a set as a trie, its nodes in depth-first order, children by byte. Node 0 is the
// root. A node's subtree is the range from it to its `end`; so are the tokens below it.
class TokenTrie {
 public:
  struct Node {
    uint32_t end;
    uint32_t tokens_begin;  // this node's tokens end where those of the next node begin
    uint16_t depth;         // bytes from the root
    uint8_t byte;           // that leads to it
  };
  struct Entry {
    std::string_view bytes;  // not empty
    int32_t token;
  };

  TokenTrie() : nodes_{{1, 0, 0, 0}, {1, 0, 0, 0}} {}
  // Sorts the entries.
  explicit TokenTrie(std::vector<Entry> entries);

  size_t num_nodes() const { return nodes_.size() - 1; }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  std::span<const int32_t> tokens(uint32_t index) const {
    return {tokens_.data() + nodes_[index].tokens_begin,
            tokens_.data() + nodes_[index + 1].tokens_begin};
  }
  std::span<const int32_t> tokens_below(uint32_t index) const {
    return {tokens_.data() + nodes_[index].tokens_begin,
            tokens_.data() + nodes_[nodes_[index].end].tokens_begin};
  }
  bool has_children(uint32_t index) const { return nodes_[index].end > index + 1; }
  // Calls visit(child index) for each child.
  template <typename Visit>
  void ForEachChild(uint32_t index, const Visit& visit) const {
    for (uint32_t child = index + 1; child < nodes_[index].end; child = nodes_[child].end) {
      visit(child);
    }
  }
  // The child by the byte, or 0.
  uint32_t Child(uint32_t index, uint8_t byte) const;
  uint32_t max_depth() const { return max_depth_; }
  size_t bytes_used() const {
    return nodes_.capacity() * sizeof(Node) + tokens_.capacity() * sizeof(int32_t);
  }

 private:
  std::vector<Node> nodes_;  // and one more, for the ends
  std::vector<int32_t> tokens_;
  uint32_t max_depth_ = 0;
};

// Immutable; built once a tokenizer (some 100 ms for 129,280 tokens) and shared by all grammars.
class Vocabulary {
 public:
  static constexpr size_t kMaxTokenBytes = 4096;

  // token_bytes[id]: what the token stands for. An empty string: a token that no grammar allows
  // (control tokens, unused ids). `end_tokens` are allowed where the text may end, and nowhere
  // else, whatever their bytes. kInvalidArgument for an id out of range or a token that is too
  // long.
  static Result<std::shared_ptr<const Vocabulary>> Create(std::vector<std::string> token_bytes,
                                                          std::vector<int32_t> end_tokens);

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

  // Plain tokens consist of whole characters, none of them a control below U+0020, '"' or '\': the
  // bulk of any vocabulary, and what text in JSON strings or prose may hold anywhere. An
  // automaton that loops on all such characters takes these masks instead of walking.
  const TokenTrie& rest_trie() const { return rest_trie_; }  // the tokens that are not plain
  // Plain tokens of at most `chars` characters (any number beyond kMaxPlainChars: all).
  static constexpr uint32_t kMaxPlainChars = 32;
  std::span<const uint32_t> plain_mask(uint32_t chars) const;
  // Plain tokens of more than kMaxPlainChars characters, by length.
  struct LongToken {
    uint32_t chars;
    int32_t token;
  };
  const std::vector<LongToken>& long_plain_tokens() const { return long_plain_tokens_; }

  // The largest number of bytes of any token.
  uint32_t max_token_bytes() const { return trie_.max_depth(); }
  size_t bytes_used() const;

 private:
  Vocabulary() = default;

  std::vector<std::string> token_bytes_;
  std::vector<int32_t> end_tokens_;
  ByteSet single_bytes_;
  TokenTrie trie_;
  TokenTrie rest_trie_;
  std::vector<std::vector<uint32_t>> plain_masks_;  // [kMaxPlainChars] is all
  std::vector<LongToken> long_plain_tokens_;
};

// The number of characters if the bytes are plain as Vocabulary defines it, else 0.
uint32_t PlainChars(std::string_view bytes);

}  // namespace deepinfer::grammar
