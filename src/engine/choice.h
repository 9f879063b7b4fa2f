// One choice of a request on its way: its tokens become text, stop conditions and grammar masks.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deepinfer/result.h"
#include "engine/callback_thread.h"
#include "engine/grammar_compiler.h"
#include "engine/request_stream.h"
#include "engine/stop_checker.h"
#include "exec/grammar_lookahead.h"
#include "exec/step.h"
#include "grammar/matcher.h"
#include "sched/plan.h"
#include "tokenizer/detokenizer.h"

namespace deepinfer {

using SteadyTime = std::chrono::steady_clock::time_point;

// What a request's choices share.
struct ActiveRequest {
  uint64_t id = 0;  // choice i has the scheduler's id `id` + i
  SamplingParams params;
  RequestOptions options;
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 0;  // max_tokens, or what the context has room for
  std::shared_ptr<const StopStrings> stops;
  std::optional<GrammarSource> grammar;
  bool thinking = false;  // the answer begins inside a reasoning block
  std::shared_ptr<RequestStream> stream;
  std::shared_ptr<Subscription> subscription;  // null without a callback
  SteadyTime submitted;
  std::optional<SteadyTime> first_token;
  SteadyTime last_token;
  int64_t open_choices = 0;
  bool scheduled = false;  // a row of it was planned
};

// Ids that mean something to a choice.
struct ControlTokens {
  int32_t end = -1;        // of the sequence
  int32_t think_end = -1;  // -1: the tokenizer has none
};

// Belongs to the engine's thread, but for what exec::SequenceSampling and MaskGate say.
class Choice final : public exec::GrammarLookahead {
 public:
  // `grammar` may be null.
  Choice(std::shared_ptr<ActiveRequest> request, int64_t index, const Tokenizer& tokenizer,
         const ControlTokens& tokens, std::shared_ptr<const grammar::CompiledGrammar> grammar);

  ActiveRequest& request() { return *request_; }
  sched::RequestId id() const { return request_->id + static_cast<uint64_t>(index_); }
  exec::SequenceSampling& sampling() { return sampling_; }

  // A row that samples is about to be launched. Its gate, to be opened by OpenGate; null without a
  // grammar.
  const exec::MaskGate* PrepareGate();
  // Opens the gate of the launched row, if there is one and every token before it is known.
  // An error fails the choice.
  Status OpenGate();
  // The grammar along drafts: the executor's, while a row whose gate was opened is in flight.
  exec::MaskGate::State Follow(int32_t draft, std::span<uint32_t> mask) override;
  void Forget() override;
  // The choice has ended: its gate opens, and nothing is drawn.
  void CloseGate();

  // The grammar follows `token`. Before Accept. Errors: the grammar cannot.
  Status FollowGrammar(int32_t token);
  // Takes the next token. A reason: the choice ends after it.
  std::optional<FinishReason> Accept(int32_t token, TokenLogprobs* logprobs);
  // No token will follow: text that was held back comes.
  void Finish(FinishReason reason, std::string error);
  bool finished() const { return finished_; }

  // What came since the last call; empty: nothing.
  std::optional<OutputDelta> TakeDelta();
  const std::optional<int32_t>& stop_token() const { return stop_token_; }
  const std::optional<std::string>& stop_string() const { return stop_string_; }

  int64_t rows_in_flight = 0;     // of all kinds
  int64_t samples_in_flight = 0;  // of them, that sample
  std::string error;              // why it is being cancelled; empty: somebody wanted it to

 private:
  void MaskReasoning(std::span<uint32_t> mask) const;
  // Text that is certain. True when it ends with a stop string.
  bool PushText(std::string_view text);

  const std::shared_ptr<ActiveRequest> request_;
  const int64_t index_;
  const ControlTokens tokens_;
  exec::SequenceSampling sampling_;
  Detokenizer detokenizer_;
  StopChecker stop_checker_;
  std::optional<grammar::Matcher> matcher_;
  bool in_reasoning_;
  size_t drafts_followed_ = 0;           // by matcher_
  bool draft_ends_thinking_ = false;     // in_reasoning_ is to be true again
  std::array<exec::MaskGate, 2> gates_;  // by turns, since one may be in use while the next is made
  int gate_turn_ = 0;
  exec::MaskGate* waiting_gate_ = nullptr;

  int64_t followed_ = 0;      // tokens that FollowGrammar took: several may come before one Accept
  int64_t grammar_end_ = -1;  // of them, with the one that ended the grammar; -1: it goes on
  int64_t generated_ = 0;
  OutputDelta delta_;
  bool finished_ = false;
  std::optional<int32_t> stop_token_;
  std::optional<std::string> stop_string_;
};

}  // namespace deepinfer
