// The part of a mask that depends on who called a rule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/chart.h"
#include "grammar/state_mask.h"

namespace deepinfer::grammar {

// Continues tokens beyond the end of the rule in which they began. Tokens that have the same rest
// are followed together, so each rest is parsed once. Scratch memory for many uses; not
// thread-safe.
class ExitWalk {
 public:
  // Sets the bits of the tokens behind `exits` that go on after the frame's rule. Uses the top of
  // the chart and cuts it back. False if the chart's work exceeds max_work.
  bool Run(Chart& chart, uint32_t frame, const StateMask& state_mask, uint64_t max_work,
           std::span<uint32_t> mask);

 private:
  bool Walk(uint32_t begin, std::span<const StateMask::Exit> bundle);
  std::vector<StateMask::Exit>& Bundle(size_t depth);

  Chart* chart_ = nullptr;
  const TokenTrie* trie_ = nullptr;
  std::span<uint32_t> mask_;
  uint64_t max_work_ = 0;
  size_t depth_ = 0;
  std::vector<std::unique_ptr<std::vector<StateMask::Exit>>> bundles_;
};

}  // namespace deepinfer::grammar
