// A request's grammar along drafts, which nobody has drawn yet.
#pragma once

#include <cstdint>
#include <span>

#include "exec/mask_gate.h"

namespace deepinfer::exec {

// Belongs to the executor's thread, or to one of its workers at a time, from the moment a row's
// gate opens to the end of the row's step.
class GrammarLookahead {
 public:
  virtual ~GrammarLookahead() = default;
  // Goes on as if `draft`, which is allowed there, had been drawn, and says what may follow it; the
  // words of `mask` are written where that is kMasked. kSkip: nothing follows, or the grammar gives
  // up; then this draft is the last one.
  virtual MaskGate::State Follow(int32_t draft, std::span<uint32_t> mask) = 0;
  // Forgets all drafts since the last call.
  virtual void Forget() = 0;
};

}  // namespace deepinfer::exec
