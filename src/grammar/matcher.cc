#include "grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "grammar/mask_walk.h"

namespace deepinfer::grammar {

namespace {

// A mask that took more steps than this with all state masks at hand is worth keeping as a whole,
// if what it depends on is small.
constexpr uint64_t kCostlyWork = 400;
constexpr size_t kMaxSignatureWords = 256;

}  // namespace

struct Matcher::Scratch {
  Scratch(const Program& program, const Vocabulary& vocabulary) : builder(program, vocabulary) {}

  StateMaskBuilder builder;
  std::vector<uint64_t> signature;
  StateMask own_mask;
  ExitWalk exits;
};

void Matcher::ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), chart_(grammar_->program()) {
  const Program& program = grammar_->program();
  chart_.BeginSet();
  chart_.AddReached({program.rule_start[program.root_rule], 0, 0});
  items_.assign(chart_.items(0, chart_.size()).begin(), chart_.items(0, chart_.size()).end());
  history_.push_back({0, 1, 0, chart_.bottom_ended(), false});
  chart_.CutBack(CurrentMark());
}

Matcher::Matcher(const Matcher& other)
    : grammar_(other.grammar_),
      chart_(other.chart_),
      items_(other.items_),
      history_(other.history_),
      can_end_(other.can_end_) {}

Matcher& Matcher::operator=(const Matcher& other) {
  if (this != &other) *this = Matcher(other);
  return *this;
}

uint32_t Matcher::CloseCurrent() {
  chart_.CutBack(CurrentMark());
  chart_.ResetWork();
  chart_.BeginSet();
  for (size_t i = history_.back().items_begin; i < items_.size(); ++i) {
    chart_.AddReached(items_[i]);
  }
  chart_.Close(0);
  can_end_ = history_.back().bottom_ended || chart_.bottom_ended();
  return 0;
}

Status Matcher::FillMask(std::span<uint32_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  if (has_ended()) return {};
  const Vocabulary& vocabulary = grammar_->vocabulary();
  const Program& program = grammar_->program();
  if (scratch_ == nullptr) scratch_.reset(new Scratch(program, vocabulary));
  const uint32_t begin = CloseCurrent();
  const uint32_t end = chart_.size();
  const uint64_t max_work = grammar_->limits().max_step_work;
  const auto sign = [&] {
    scratch_->signature.assign(1, *can_end_ ? 1 : 0);
    return chart_.AppendSignature(
        begin, end, kMaxSignatureWords,
        [this](uint32_t state, uint64_t reg) { return grammar_->RegisterClass(state, reg); },
        scratch_->signature);
  };
  if (grammar_->has_whole_masks() && sign() && grammar_->FindWholeMask(scratch_->signature, mask)) {
    chart_.CutBack(CurrentMark());
    return {};
  }
  bool finished = true;
  for (uint32_t i = begin; i < end && finished; ++i) {
    const Item item = chart_.item(i);
    if (program.bytes(item.state).empty()) continue;
    DI_ASSIGN_OR_RETURN(const StateMask* const state_mask,
                        grammar_->MaskOf(item.state, chart_.rule_of(item.frame), item.reg,
                                         scratch_->builder, scratch_->own_mask));
    state_mask->AddTo(mask);
    if (state_mask->exits.empty()) continue;
    finished = scratch_->exits.Run(chart_, item.frame, *state_mask, max_work, mask);
  }
  if (finished && chart_.work() > kCostlyWork && sign()) {
    AddEndTokens(mask);
    grammar_->KeepWholeMask(scratch_->signature, mask);
  }
  chart_.CutBack(CurrentMark());
  if (!finished || chart_.work() > max_work) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "the grammar is too ambiguous: a mask takes more than {} steps", max_work);
  }
  AddEndTokens(mask);
  return {};
}

// Where the text may end.
void Matcher::AddEndTokens(std::span<uint32_t> mask) const {
  if (!*can_end_) return;
  for (const int32_t token : grammar_->vocabulary().end_tokens()) {
    mask[static_cast<uint32_t>(token) / 32] |= uint32_t{1} << (token & 31);
  }
}

bool Matcher::StepBytes(std::string_view bytes, uint32_t& begin) {
  begin = CloseCurrent();
  const uint64_t max_work = grammar_->limits().max_step_work;
  bool first = true;
  for (const char c : bytes) {
    if (!first) chart_.Close(begin);
    first = false;
    const uint32_t end = chart_.size();
    if (!chart_.Step(begin, end, static_cast<uint8_t>(c))) return false;
    if (chart_.work() > max_work) return false;
    begin = end;
  }
  return true;
}

void Matcher::Commit(uint32_t begin) {
  const Chart::Mark mark = chart_.mark();
  const size_t items_begin = items_.size();
  const auto set = chart_.items(begin, mark.items);
  items_.insert(items_.end(), set.begin(), set.end());
  history_.push_back({items_begin, mark.frames, mark.links, chart_.bottom_ended(), false});
  can_end_.reset();
  chart_.CutBack(CurrentMark());
}

Result<bool> Matcher::Allows(int32_t token) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (token < 0 || token >= vocabulary.size() || has_ended()) return false;
  if (vocabulary.IsEndToken(token)) return CanEnd();
  if (vocabulary.token_bytes(token).empty()) return false;
  uint32_t begin;
  const bool allowed = StepBytes(vocabulary.token_bytes(token), begin);
  chart_.CutBack(CurrentMark());
  return allowed;
}

Status Matcher::Advance(int32_t token) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (token < 0 || token >= vocabulary.size()) {
    return MakeError(ErrorCode::kInvalidArgument, "token {} is not in [0, {})", token,
                     vocabulary.size());
  }
  if (!has_ended() && vocabulary.IsEndToken(token) && CanEnd()) {
    Moment moment = history_.back();
    moment.items_begin = items_.size();
    moment.ended = true;
    history_.push_back(moment);
    can_end_ = false;
    return {};
  }
  const std::string_view bytes = vocabulary.token_bytes(token);
  if (has_ended() || vocabulary.IsEndToken(token) || bytes.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "token {} is not allowed here", token);
  }
  const Status taken = AdvanceBytes(bytes);
  if (taken || taken.error().code != ErrorCode::kInvalidArgument) return taken;
  return MakeError(ErrorCode::kInvalidArgument, "token {} is not allowed here", token);
}

Status Matcher::AdvanceBytes(std::string_view bytes) {
  if (bytes.empty() && !has_ended()) {
    Moment moment = history_.back();
    const std::vector<Item> same(items_.begin() + static_cast<ptrdiff_t>(moment.items_begin),
                                 items_.end());
    moment.items_begin = items_.size();
    items_.insert(items_.end(), same.begin(), same.end());
    history_.push_back(moment);
    return {};
  }
  uint32_t begin;
  const bool allowed = !has_ended() && StepBytes(bytes, begin);
  if (!allowed || chart_.work() > grammar_->limits().max_step_work) {
    const bool exhausted = chart_.work() > grammar_->limits().max_step_work;
    chart_.CutBack(CurrentMark());
    if (exhausted) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "the grammar is too ambiguous: a token takes more than {} steps",
                       grammar_->limits().max_step_work);
    }
    return MakeError(ErrorCode::kInvalidArgument, "these bytes are not allowed here");
  }
  Commit(begin);
  return {};
}

Result<size_t> Matcher::AcceptSeveral(std::span<const int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Status taken = Advance(tokens[i]);
    if (taken) continue;
    if (taken.error().code != ErrorCode::kInvalidArgument) return Forward(taken.error());
    return i;
  }
  return tokens.size();
}

Status Matcher::Rollback(size_t tokens) {
  if (tokens > num_taken()) {
    return MakeError(ErrorCode::kInvalidArgument, "cannot undo {} tokens of {}", tokens,
                     num_taken());
  }
  for (; tokens > 0; --tokens) {
    items_.resize(history_.back().items_begin);
    history_.pop_back();
  }
  chart_.CutBack(CurrentMark());
  can_end_.reset();
  return {};
}

bool Matcher::CanEnd() {
  if (has_ended()) return false;
  if (!can_end_) {
    CloseCurrent();
    chart_.CutBack(CurrentMark());
  }
  return *can_end_;
}

bool Matcher::MustEnd() {
  if (has_ended()) return false;
  const uint32_t begin = CloseCurrent();
  const bool stuck = chart_.PossibleBytes(begin, chart_.size()) == ByteSet();
  chart_.CutBack(CurrentMark());
  return stuck;
}

std::string Matcher::ForcedBytes(size_t max_bytes) {
  std::string forced;
  if (has_ended()) return forced;
  uint32_t begin = CloseCurrent();
  bool may_end = *can_end_;
  while (forced.size() < max_bytes && !may_end) {
    const uint32_t end = chart_.size();
    const ByteSet first = chart_.PossibleBytes(begin, end);
    int count = 0;
    uint8_t byte = 0;
    for (uint32_t word = 0; word < 4; ++word) {
      count += std::popcount(first.words[word]);
      if (first.words[word] != 0) {
        byte = static_cast<uint8_t>(word * 64 +
                                    static_cast<uint32_t>(std::countr_zero(first.words[word])));
      }
    }
    if (count != 1 || !chart_.Step(begin, end, byte)) break;
    if (chart_.work() > grammar_->limits().max_step_work) break;
    forced.push_back(static_cast<char>(byte));
    begin = end;
    may_end = chart_.bottom_ended();
    chart_.Close(begin);
    may_end = may_end || chart_.bottom_ended();
  }
  chart_.CutBack(CurrentMark());
  return forced;
}

// Whether some token begins with the forced bytes from `from` on, goes beyond them, and is allowed
// there.
bool Matcher::LongerTokenAllowed(std::string_view forced, size_t from) {
  const TokenTrie& trie = grammar_->vocabulary().trie();
  uint32_t node = 0;
  for (size_t i = from; i < forced.size(); ++i) {
    node = trie.Child(node, static_cast<uint8_t>(forced[i]));
    if (node == 0) return false;
  }
  if (!trie.has_children(node)) return false;
  uint32_t begin;
  if (!StepBytes(forced, begin)) return false;
  chart_.Close(begin);
  const uint32_t end = chart_.size();
  const ByteSet first = chart_.PossibleBytes(begin, end);
  bool allowed = false;
  // One more byte is as good as the whole token: the rest of its subtree may still be refused,
  // then a token is left to the model that could have been forced, which is always right.
  trie.ForEachChild(node,
                    [&](uint32_t child) { allowed |= first.Contains(trie.node(child).byte); });
  return allowed;
}

std::vector<int32_t> Matcher::ForcedTokens(const Tokenize& tokenize, size_t max_bytes) {
  const std::string forced = ForcedBytes(max_bytes);
  std::vector<int32_t> tokens = forced.empty() ? std::vector<int32_t>() : tokenize(forced);
  const Vocabulary& vocabulary = grammar_->vocabulary();
  std::vector<size_t> starts;
  size_t at = 0;
  for (const int32_t token : tokens) {
    const bool known = token >= 0 && token < vocabulary.size();
    const std::string_view bytes = known ? vocabulary.token_bytes(token) : std::string_view();
    if (bytes.empty() || forced.compare(at, bytes.size(), bytes) != 0) break;
    starts.push_back(at);
    at += bytes.size();
  }
  tokens.resize(starts.size());
  const std::string_view covered = std::string_view(forced).substr(0, at);
  size_t keep = tokens.size();
  const size_t first_checked = keep - std::min(keep, kMaxDropped);
  for (size_t i = tokens.size(); i > first_checked; --i) {
    if (LongerTokenAllowed(covered, starts[i - 1])) keep = i - 1;
  }
  chart_.CutBack(CurrentMark());
  tokens.resize(keep);
  return tokens;
}

size_t Matcher::bytes_used() const {
  return sizeof(*this) + chart_.bytes_used() + items_.capacity() * sizeof(Item) +
         history_.capacity() * sizeof(Moment);
}

}  // namespace deepinfer::grammar
