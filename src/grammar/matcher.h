// One request's way through a grammar.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/chart.h"
#include "grammar/compiled_grammar.h"

namespace deepinfer::grammar {

// Follows the tokens of one output. Whatever FillMask allows can be completed: a matcher is never
// stuck. Copying forks it; copies are independent and share only the compiled grammar. Results
// depend on the tokens alone, never on what other matchers did. Not thread-safe.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher& other);
  Matcher(Matcher&&) noexcept = default;
  Matcher& operator=(Matcher&&) noexcept = default;
  ~Matcher() = default;

  Matcher Fork() const { return *this; }

  // Sets bit id % 32 of word id / 32 for every token that may come next, and clears the others.
  // `mask` has vocabulary().mask_words() words. Once an end token was taken no bit is set.
  // kResourceExhausted where the grammar is too ambiguous (Limits::max_step_work).
  Status FillMask(std::span<uint32_t> mask);

  // Whether FillMask would set the token's bit. False for ids outside the vocabulary.
  Result<bool> Allows(int32_t token);
  // Takes the token. kInvalidArgument if it is not allowed, and then nothing changes.
  Status Advance(int32_t token);
  // Takes tokens as long as they are allowed and returns how many those were.
  Result<size_t> AcceptSeveral(std::span<const int32_t> tokens);
  // Takes bytes that need not be tokens (a forced prefix). Counts as one token for Rollback.
  Status AdvanceBytes(std::string_view bytes);
  // Undoes the last `tokens` of num_taken(). kInvalidArgument if there are not so many.
  Status Rollback(size_t tokens);
  size_t num_taken() const { return history_.size() - 1; }

  // Whether the text so far is complete: an end token may come.
  bool CanEnd();
  // Whether nothing but an end token may come.
  bool MustEnd();
  // Whether an end token was taken.
  bool has_ended() const { return history_.back().ended; }

  // The bytes that must come next, as far as there is no choice, and at most `max_bytes`.
  std::string ForcedBytes(size_t max_bytes = 256);
  // Tokens of a prefix of the forced bytes, as `tokenize` splits them, that may be taken without
  // asking the model. Left out at the end are tokens, at most kMaxDropped of them, that an
  // allowed longer token might replace: the model could have preferred it. Each returned token is
  // allowed after those before it.
  static constexpr size_t kMaxDropped = 4;
  using Tokenize = std::function<std::vector<int32_t>(std::string_view)>;
  std::vector<int32_t> ForcedTokens(const Tokenize& tokenize, size_t max_bytes = 256);

  const CompiledGrammar& grammar() const { return *grammar_; }
  size_t bytes_used() const;

 private:
  // After each token: what is in `items_` from items_begin on, and the chart's frames.
  struct Moment {
    size_t items_begin;
    uint32_t frames;
    uint32_t links;
    bool bottom_ended;  // the root rule ended exactly here
    bool ended;         // by an end token
  };

  // Puts the present set on the chart and closes it; returns its begin. Cut back to the mark
  // afterwards.
  uint32_t CloseCurrent();
  Chart::Mark CurrentMark() const { return {history_.back().frames, history_.back().links, 0}; }
  // Steps through the bytes from the present set; leaves the chart with the set on top that
  // begins at `begin`. False if the grammar has no such way.
  bool StepBytes(std::string_view bytes, uint32_t& begin);
  void Commit(uint32_t begin);
  void AddEndTokens(std::span<uint32_t> mask) const;
  bool LongerTokenAllowed(std::string_view forced, size_t from);

  std::shared_ptr<const CompiledGrammar> grammar_;
  Chart chart_;
  std::vector<Item> items_;
  std::vector<Moment> history_;
  std::optional<bool> can_end_;  // of the present moment, once known
  // Scratch of FillMask, made when first needed; copies do not take it along.
  struct Scratch;
  struct ScratchDeleter {
    void operator()(Scratch* scratch) const;
  };
  std::unique_ptr<Scratch, ScratchDeleter> scratch_;
};

}  // namespace deepinfer::grammar
