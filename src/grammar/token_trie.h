// Tokens as a trie of their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

}  // namespace deepinfer::grammar
