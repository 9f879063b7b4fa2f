// Stop strings in text that arrives in pieces. Source: spec algorithms sections 2.2 and 10.3.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace deepinfer {

// All stop strings of a request as one automaton (Aho and Corasick 1975), so that their number does
// not matter while text is read. Immutable; the choices of a request share it.
class StopStrings {
 public:
  // Errors: a string that is empty or not valid UTF-8, by its place in the list.
  static Result<StopStrings> Create(std::span<const std::string> stops);

  bool empty() const { return nodes_.size() == 1; }

 private:
  friend class StopChecker;
  // A node is a prefix of a stop string.
  struct Node {
    int32_t depth = 0;        // bytes of the prefix
    int32_t failure = 0;      // the longest proper suffix that is a prefix too
    int32_t stop = -1;        // the longest stop string that is a suffix
    int32_t first_child = 0;  // of children_
    int32_t child_count = 0;
  };
  struct Child {
    uint8_t byte;
    int32_t node;
  };
  StopStrings() = default;
  // Fills failure, and stop where a shorter one ends in a node.
  void LinkSuffixes();
  // -1: none.
  int32_t FindChild(int32_t node, uint8_t byte) const;
  // The node of the longest suffix of (prefix of `node` + byte) that is a prefix.
  int32_t Step(int32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;                      // the root first
  std::vector<Child> children_;                  // of each node together, in ascending byte order
  std::array<int32_t, 256> root_children_ = {};  // the root itself where there is none
  std::vector<int32_t> lengths_;                 // bytes of each stop string
};

// Splits the output of one choice into text that is certain and text that may yet turn out to begin
// a stop string. The output ends before the stop string whose last byte comes first, the longest of
// those that end there. Text and stop strings are whole UTF-8 characters, hence so is every piece.
// What is given out does not depend on how the text was cut. Not thread-safe.
class StopChecker {
 public:
  explicit StopChecker(std::shared_ptr<const StopStrings> stops) : stops_(std::move(stops)) {}

  // Appends the text that is certain now to `out` and returns whether a stop string is complete:
  // then its index is stop(), the rest of `text` is dropped, and nothing may be pushed any more.
  bool Push(std::string_view text, std::string& out);
  // The output ended otherwise: appends what is held back. The object is then as new.
  void Finish(std::string& out);

  // Index of the stop string that ended the output; -1: none.
  int32_t stop() const { return stop_; }
  // Bytes held back: less than the longest stop string has.
  size_t held_bytes() const { return held_.size(); }

 private:
  std::shared_ptr<const StopStrings> stops_;
  int32_t node_ = 0;  // its prefix is held_
  int32_t stop_ = -1;
  std::string held_;
};

}  // namespace deepinfer
