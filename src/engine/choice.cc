#include "engine/choice.h"

#include <algorithm>
#include <utility>

#include "sampling/random_stream.h"

namespace deepinfer {
namespace {

SamplingParams ParamsOfChoice(const SamplingParams& params, int64_t index) {
  SamplingParams own = params;
  own.seq_seed = ChildSeed(params.seq_seed, index);
  if (index > 0) own.prompt_logprobs.reset();  // they are the same for all choices
  return own;
}

}  // namespace

Choice::Choice(std::shared_ptr<ActiveRequest> request, int64_t index, const Tokenizer& tokenizer,
               const ControlTokens& tokens, std::shared_ptr<const grammar::CompiledGrammar> grammar)
    : request_(std::move(request)),
      index_(index),
      tokens_(tokens),
      sampling_(ParamsOfChoice(request_->params, index), request_->prompt, tokens.end),
      detokenizer_(tokenizer),
      stop_checker_(request_->stops),
      in_reasoning_(request_->thinking) {
  if (grammar != nullptr) matcher_.emplace(std::move(grammar));
  delta_.index = index;
}

const exec::MaskGate* Choice::PrepareGate() {
  if (!matcher_) return nullptr;
  gate_turn_ ^= 1;
  waiting_gate_ = &gates_[static_cast<size_t>(gate_turn_)];
  waiting_gate_->Reset(matcher_->grammar().vocabulary().mask_words());
  return waiting_gate_;
}

Status Choice::OpenGate() {
  // One sample in flight is the row of the gate itself.
  if (waiting_gate_ == nullptr || samples_in_flight > 1) return {};
  exec::MaskGate& gate = *std::exchange(waiting_gate_, nullptr);
  if (in_reasoning_) {
    MaskReasoning(gate.words());
    gate.Open(exec::MaskGate::State::kMasked);
    return {};
  }
  const Status status = matcher_->FillMask(gate.words());
  gate.Open(status ? exec::MaskGate::State::kMasked : exec::MaskGate::State::kSkip);
  return status;
}

// An output that ended in its reasoning would not be in the language.
void Choice::MaskReasoning(std::span<uint32_t> mask) const {
  std::ranges::fill(mask, ~uint32_t{0});
  sampling_.ForbidEnds(mask);
}

void Choice::CloseGate() {
  if (waiting_gate_ == nullptr) return;
  std::exchange(waiting_gate_, nullptr)->Open(exec::MaskGate::State::kSkip);
}

exec::MaskGate::State Choice::Follow(int32_t draft, std::span<uint32_t> mask) {
  using State = exec::MaskGate::State;
  if (sampling_.Ends(draft)) return State::kSkip;
  if (in_reasoning_) {
    if (draft != tokens_.think_end) {
      MaskReasoning(mask);
      return State::kMasked;
    }
    in_reasoning_ = false;
    draft_ends_thinking_ = true;
  } else {
    if (!matcher_->Advance(draft)) return State::kSkip;
    ++drafts_followed_;
    if (matcher_->has_ended()) return State::kSkip;
  }
  return matcher_->FillMask(mask) ? State::kMasked : State::kSkip;
}

void Choice::Forget() {
  // As many as it took.
  (void)matcher_->Rollback(std::exchange(drafts_followed_, 0));
  if (std::exchange(draft_ends_thinking_, false)) in_reasoning_ = true;
}

Status Choice::FollowGrammar(int32_t token) {
  if (!matcher_) return {};
  ++followed_;
  if (in_reasoning_) {
    in_reasoning_ = token != tokens_.think_end;
    return {};
  }
  if (sampling_.Ends(token) && !matcher_->grammar().vocabulary().IsEndToken(token)) return {};
  DI_RETURN_IF_ERROR(matcher_->Advance(token));
  if (matcher_->has_ended()) grammar_end_ = followed_;
  return {};
}

bool Choice::PushText(std::string_view text) {
  if (generated_ <= request_->params.min_tokens) {
    delta_.text += text;
    return false;
  }
  if (!stop_checker_.Push(text, delta_.text)) return false;
  stop_string_ = request_->params.stop[static_cast<size_t>(stop_checker_.stop())];
  return true;
}

std::optional<FinishReason> Choice::Accept(int32_t token, TokenLogprobs* logprobs) {
  ++generated_;
  delta_.token_ids.push_back(token);
  if (logprobs != nullptr) delta_.logprobs.push_back(std::move(*logprobs));
  if (sampling_.Ends(token)) {
    if (token != tokens_.end) stop_token_ = token;
    return FinishReason::kStop;
  }
  // With ignore_eos, too, a grammar that has ended allows nothing more.
  if (PushText(detokenizer_.Push(token)) || generated_ == grammar_end_) {
    return FinishReason::kStop;
  }
  return std::nullopt;
}

void Choice::Finish(FinishReason reason, std::string why) {
  if (!stop_string_ && !PushText(detokenizer_.Finish())) stop_checker_.Finish(delta_.text);
  delta_.finish_reason = reason;
  delta_.error = std::move(why);
  finished_ = true;
  CloseGate();
}

std::optional<OutputDelta> Choice::TakeDelta() {
  if (delta_.token_ids.empty() && !delta_.finish_reason) return std::nullopt;
  OutputDelta delta = std::exchange(delta_, {});
  delta_.index = index_;
  return delta;
}

}  // namespace deepinfer
