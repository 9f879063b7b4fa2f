// A grammar ready to match with one vocabulary: the program and the masks found so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/limits.h"
#include "grammar/program.h"
#include "grammar/state_mask.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

struct GrammarStats {
  size_t states;
  size_t rules;
  size_t program_bytes;
  size_t mask_bytes;   // of cached state masks
  size_t state_masks;  // how many
};

// Immutable for its users; thread-safe. Masks of states are computed by the first matcher that
// needs them and kept up to Limits::max_mask_bytes; beyond that they are computed each time.
class CompiledGrammar {
 public:
  // Errors as CompileProgram's, and kInvalidArgument if the grammar uses a byte that no token of
  // the vocabulary is.
  static Result<std::shared_ptr<const CompiledGrammar>> Create(
      GrammarIr ir, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits = {});
  // With a budget that the front end has already drawn on.
  static Result<std::shared_ptr<const CompiledGrammar>> Create(
      GrammarIr ir, std::shared_ptr<const Vocabulary> vocabulary, Budget& budget);

  CompiledGrammar(const CompiledGrammar&) = delete;
  CompiledGrammar& operator=(const CompiledGrammar&) = delete;

  const Program& program() const { return program_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Limits& limits() const { return limits_; }

  // The state's mask with its register. `builder` works for this grammar's program; `own` keeps
  // masks that the cache has no room for, and must outlive the use of the result.
  Result<const StateMask*> MaskOf(uint32_t state, uint32_t rule, uint64_t reg,
                                  StateMaskBuilder& builder, StateMask& own) const;

  // Whole masks of situations that were costly to compute, by Chart::AppendSignature; copied out.
  // has_whole_masks() tells cheaply whether looking is of any use.
  bool has_whole_masks() const { return has_whole_masks_.load(std::memory_order_relaxed); }
  bool FindWholeMask(const std::vector<uint64_t>& signature, std::span<uint32_t> mask) const;
  void KeepWholeMask(const std::vector<uint64_t>& signature, std::span<const uint32_t> mask) const;
  // Registers that no token can tell apart have the same class.
  uint64_t RegisterClass(uint32_t state, uint64_t reg) const;

  GrammarStats stats() const;
  size_t bytes_used() const;

 private:
  CompiledGrammar(Program program, std::shared_ptr<const Vocabulary> vocabulary,
                  const Limits& limits);
  bool Reserve(size_t bytes) const;

  const Program program_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const Limits limits_;
  // One slot a state, for masks that do not depend on the register.
  mutable std::vector<std::atomic<const StateMask*>> masks_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<const StateMask>> owned_;  // guarded by mutex_
  // Masks that do, by state and class of the register; guarded by mutex_.
  mutable std::map<std::pair<uint32_t, uint64_t>, const StateMask*> register_masks_;
  mutable std::map<std::vector<uint64_t>, std::vector<uint32_t>> whole_masks_;  // guarded
  mutable std::atomic<bool> has_whole_masks_{false};
  mutable std::atomic<size_t> mask_bytes_{0};
};

}  // namespace deepinfer::grammar
