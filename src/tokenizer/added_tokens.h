// Finding added tokens in text before it is pre-tokenized.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace deepinfer {

// A set of strings with ids. Immutable and thread-safe once filled.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() { first_.fill(kNone); }

  // `content` is not empty and was not added before.
  void Add(std::string_view content, int32_t id);

  // Cuts `text` at its matches, leftmost first and the longest of those that begin together, and
  // calls on_text(part) for the parts between them that are not empty and on_token(id), in order.
  template <typename OnText, typename OnToken>
  void Split(std::string_view text, OnText&& on_text, OnToken&& on_token) const {
    size_t plain_begin = 0;
    for (size_t pos = 0; pos < text.size();) {
      if (first_[static_cast<uint8_t>(text[pos])] == kNone) {
        ++pos;
        continue;
      }
      const Match match = LongestAt(text, pos);
      if (match.length == 0) {
        ++pos;
        continue;
      }
      if (pos > plain_begin) on_text(text.substr(plain_begin, pos - plain_begin));
      on_token(match.id);
      pos += match.length;
      plain_begin = pos;
    }
    if (plain_begin < text.size()) on_text(text.substr(plain_begin));
  }

 private:
  static constexpr int32_t kNone = -1;

  struct Match {
    size_t length = 0;  // 0: no match
    int32_t id = kNone;
  };
  // A node of the trie of contents: reached by `byte` from its parent.
  struct Node {
    uint8_t byte;
    int32_t id = kNone;  // of the content that ends here
    int32_t child = kNone;
    int32_t sibling = kNone;
  };

  Match LongestAt(std::string_view text, size_t pos) const;
  int32_t FindSibling(int32_t node, uint8_t byte) const;

  std::array<int32_t, 256> first_;  // the node of each first byte
  std::vector<Node> nodes_;
};

}  // namespace deepinfer
