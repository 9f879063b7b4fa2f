#include "engine/request_stream.h"

#include <algorithm>
#include <utility>

namespace deepinfer {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContext:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

RequestStream::RequestStream(uint64_t id, std::vector<int32_t> prompt, int64_t choices,
                             std::function<void()> cancel)
    : id_(id),
      cancel_(std::move(cancel)),
      cursors_(static_cast<size_t>(choices)),
      open_choices_(choices) {
  output_.request_id = id;
  output_.usage.prompt_tokens = std::ssize(prompt);
  output_.prompt_token_ids = std::move(prompt);
  output_.outputs.resize(static_cast<size_t>(choices));
  for (int64_t i = 0; i < choices; ++i) output_.outputs[static_cast<size_t>(i)].index = i;
}

std::optional<OutputDelta> RequestStream::Next() {
  std::unique_lock lock(mutex_);
  std::optional<OutputDelta> delta;
  changed_.wait(lock, [&] { return (delta = TakeDelta()).has_value() || AllTaken(); });
  return delta;
}

std::optional<OutputDelta> RequestStream::NextWithin(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  std::optional<OutputDelta> delta;
  changed_.wait_for(lock, time, [&] { return (delta = TakeDelta()).has_value() || AllTaken(); });
  return delta;
}

std::optional<OutputDelta> RequestStream::TryNext() {
  const std::lock_guard lock(mutex_);
  return TakeDelta();
}

bool RequestStream::AllTaken() const { return std::ranges::all_of(cursors_, &Cursor::finished); }

std::optional<OutputDelta> RequestStream::TakeDelta() {
  for (size_t i = 0; i < cursors_.size(); ++i) {
    const CompletionOutput& choice = output_.outputs[i];
    Cursor& cursor = cursors_[i];
    if (cursor.finished) continue;
    if (!choice.finish_reason && cursor.tokens == choice.token_ids.size()) continue;
    OutputDelta delta{.index = choice.index,
                      .text = choice.text.substr(cursor.text),
                      .token_ids = {choice.token_ids.begin() + static_cast<int64_t>(cursor.tokens),
                                    choice.token_ids.end()},
                      .logprobs = {},
                      .finish_reason = choice.finish_reason,
                      .error = choice.error};
    if (!choice.logprobs.empty()) {
      delta.logprobs.assign(choice.logprobs.begin() + static_cast<int64_t>(cursor.tokens),
                            choice.logprobs.end());
    }
    cursor = {choice.text.size(), choice.token_ids.size(), choice.finish_reason.has_value()};
    return delta;
  }
  return std::nullopt;
}

RequestOutput RequestStream::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return output_.finished; });
  return output_;
}

std::optional<RequestOutput> RequestStream::WaitFor(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, time, [&] { return output_.finished; })) return std::nullopt;
  return output_;
}

RequestOutput RequestStream::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return output_;
}

void RequestStream::Cancel() { cancel_(); }

bool RequestStream::finished() const {
  const std::lock_guard lock(mutex_);
  return output_.finished;
}

void RequestStream::Append(const OutputDelta& delta) {
  {
    const std::lock_guard lock(mutex_);
    CompletionOutput& choice = output_.outputs[static_cast<size_t>(delta.index)];
    choice.text += delta.text;
    choice.token_ids.insert(choice.token_ids.end(), delta.token_ids.begin(), delta.token_ids.end());
    for (const TokenLogprobs& logprobs : delta.logprobs) {
      choice.cumulative_logprob += static_cast<double>(logprobs.chosen.logprob);
      choice.logprobs.push_back(logprobs);
    }
    output_.usage.completion_tokens += std::ssize(delta.token_ids);
    if (delta.finish_reason) {
      choice.finish_reason = delta.finish_reason;
      choice.error = delta.error;
      output_.finished = --open_choices_ == 0;
    }
  }
  changed_.notify_all();
}

void RequestStream::Update(const std::function<void(RequestOutput&)>& change) {
  const std::lock_guard lock(mutex_);
  change(output_);
}

}  // namespace deepinfer
