#include "tokenizer/added_tokens.h"

namespace deepinfer {

int32_t AddedTokenMatcher::FindSibling(int32_t node, uint8_t byte) const {
  while (node != kNone && nodes_[static_cast<size_t>(node)].byte != byte) {
    node = nodes_[static_cast<size_t>(node)].sibling;
  }
  return node;
}

void AddedTokenMatcher::Add(std::string_view content, int32_t id) {
  int32_t parent = kNone;
  for (const char c : content) {
    const auto byte = static_cast<uint8_t>(c);
    const int32_t head = parent == kNone ? first_[byte] : nodes_[static_cast<size_t>(parent)].child;
    int32_t node = FindSibling(head, byte);
    if (node == kNone) {
      node = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .sibling = head});
      if (parent == kNone) {
        first_[byte] = node;
      } else {
        nodes_[static_cast<size_t>(parent)].child = node;
      }
    }
    parent = node;
  }
  nodes_[static_cast<size_t>(parent)].id = id;
}

AddedTokenMatcher::Match AddedTokenMatcher::LongestAt(std::string_view text, size_t pos) const {
  Match match;
  int32_t node = first_[static_cast<uint8_t>(text[pos])];
  for (size_t length = 1; node != kNone; ++length) {
    const Node& here = nodes_[static_cast<size_t>(node)];
    if (here.id != kNone) match = {length, here.id};
    if (pos + length == text.size()) break;
    node = FindSibling(here.child, static_cast<uint8_t>(text[pos + length]));
  }
  return match;
}

}  // namespace deepinfer
