#include "grammar/compiled_grammar.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {
namespace {

Status CheckBytes(const Program& program, const Vocabulary& vocabulary) {
  ByteSet used;
  for (const ByteEdge& edge : program.byte_edges) used.AddRange(edge.first, edge.last);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (used.Contains(byte) && !vocabulary.single_bytes().Contains(byte)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "the grammar uses byte {:#04x}, which is no token of the vocabulary: some "
                       "texts could not be completed",
                       byte);
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::Create(
    GrammarIr ir, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits) {
  Budget budget(limits);
  return Create(std::move(ir), std::move(vocabulary), budget);
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::Create(
    GrammarIr ir, std::shared_ptr<const Vocabulary> vocabulary, Budget& budget) {
  DI_ASSIGN_OR_RETURN(Program program, CompileProgram(std::move(ir), budget));
  DI_RETURN_IF_ERROR(CheckBytes(program, *vocabulary));
  return std::shared_ptr<const CompiledGrammar>(
      new CompiledGrammar(std::move(program), std::move(vocabulary), budget.limits()));
}

CompiledGrammar::CompiledGrammar(Program program, std::shared_ptr<const Vocabulary> vocabulary,
                                 const Limits& limits)
    : program_(std::move(program)),
      vocabulary_(std::move(vocabulary)),
      limits_(limits),
      masks_(program_.num_states()) {}

// A count matters by how far it is from its limits, up to the most steps that one token can take.
uint64_t CompiledGrammar::RegisterClass(uint32_t state, uint64_t reg) const {
  const State& info = program_.states[state];
  if (info.flags & kUsesSet) return reg;
  if ((info.flags & kUsesLoop) == 0) return 0;
  const Loop& loop = program_.loops[info.register_object];
  const uint64_t far = uint64_t{vocabulary_->max_token_bytes()} + 1;
  const uint64_t left = loop.max == kUnbounded ? far : std::min(far, loop.max - reg);
  const uint64_t lacking = std::min(far, reg < loop.min ? loop.min - reg : 0);
  return left << 32 | lacking;
}

bool CompiledGrammar::Reserve(size_t bytes) const {
  if (mask_bytes_.fetch_add(bytes) + bytes <= limits_.max_mask_bytes) return true;
  mask_bytes_.fetch_sub(bytes);
  return false;
}

Result<const StateMask*> CompiledGrammar::MaskOf(uint32_t state, uint32_t rule, uint64_t reg,
                                                 StateMaskBuilder& builder, StateMask& own) const {
  if (const StateMask* mask = masks_[state].load(std::memory_order_acquire)) return mask;
  const bool uses_register = (program_.states[state].flags & (kUsesLoop | kUsesSet)) != 0;
  const std::pair<uint32_t, uint64_t> key(state, RegisterClass(state, reg));
  if (uses_register) {
    const std::lock_guard lock(mutex_);
    const auto known = register_masks_.find(key);
    if (known != register_masks_.end()) return known->second;
  }
  DI_ASSIGN_OR_RETURN(StateMask mask,
                      builder.Build(state, reg, program_.rule_follow[rule], limits_.max_step_work));
  if (!Reserve(mask.bytes_used())) {
    own = std::move(mask);
    return &own;
  }
  // Two threads may have built the same mask; both stay valid.
  auto kept = std::make_unique<const StateMask>(std::move(mask));
  const StateMask* result = kept.get();
  const std::lock_guard lock(mutex_);
  owned_.push_back(std::move(kept));
  // What lies ahead uses the register, but perhaps no token gets that far.
  if (uses_register && builder.register_read()) {
    register_masks_.emplace(key, result);
  } else {
    masks_[state].store(result, std::memory_order_release);
  }
  return result;
}

bool CompiledGrammar::FindWholeMask(const std::vector<uint64_t>& signature,
                                    std::span<uint32_t> mask) const {
  const std::lock_guard lock(mutex_);
  const auto known = whole_masks_.find(signature);
  if (known == whole_masks_.end()) return false;
  std::copy(known->second.begin(), known->second.end(), mask.begin());
  return true;
}

void CompiledGrammar::KeepWholeMask(const std::vector<uint64_t>& signature,
                                    std::span<const uint32_t> mask) const {
  if (!Reserve(signature.size() * sizeof(uint64_t) + mask.size_bytes() + 128)) return;
  const std::lock_guard lock(mutex_);
  whole_masks_.emplace(signature, std::vector<uint32_t>(mask.begin(), mask.end()));
  has_whole_masks_.store(true, std::memory_order_relaxed);
}

GrammarStats CompiledGrammar::stats() const {
  const std::lock_guard lock(mutex_);
  return {program_.num_states(), program_.rule_start.size(), program_.bytes_used(),
          mask_bytes_.load(), owned_.size()};
}

size_t CompiledGrammar::bytes_used() const {
  return sizeof(*this) + program_.bytes_used() + masks_.capacity() * sizeof(masks_[0]) +
         mask_bytes_.load();
}

}  // namespace deepinfer::grammar
