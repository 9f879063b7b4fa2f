// What compiling one grammar may cost. Counted in states and steps, never in time, so that the same
// grammar is accepted or refused on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace deepinfer::grammar {

struct Limits {
  size_t max_states = 150'000;          // of any automaton on the way
  uint64_t max_work = 20'000'000;       // edges looked at by all constructions together
  size_t max_text_bytes = 4 << 20;      // of the grammar's source
  size_t max_depth = 2'000;             // nesting of the source
  size_t max_mask_bytes = 64 << 20;     // masks cached with one compiled grammar
  uint64_t max_step_work = 20'000'000;  // items looked at by one mask or one token
};

// Counts down one compilation's work. Every construction takes the same Budget, so a front end that
// intersects hundreds of automata is bounded as a whole. Not thread-safe.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits), work_left_(limits.max_work) {}

  const Limits& limits() const { return limits_; }

  // kResourceExhausted once the work or an automaton's size is beyond the limits.
  Status Charge(uint64_t work, size_t states = 0) {
    if (states > limits_.max_states) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "the grammar needs an automaton of more than {} states", limits_.max_states);
    }
    if (work > work_left_) {
      work_left_ = 0;
      return MakeError(ErrorCode::kResourceExhausted,
                       "the grammar needs more than {} steps to compile", limits_.max_work);
    }
    work_left_ -= work;
    return {};
  }

 private:
  Limits limits_;
  uint64_t work_left_;
};

}  // namespace deepinfer::grammar
