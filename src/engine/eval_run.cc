// Running items and windows on worker threads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>

#include "base/thread_pool.h"
#include "engine/completion.h"
#include "engine/eval.h"
#include "engine/prompt.h"
#include "engine/text.h"

namespace deepinfer {
namespace {

constexpr int64_t kWindowTokens = 4096;
constexpr size_t kChunkTokens = 256;  // whose logits are written at once

using Work = std::function<Status(size_t index, model::v41::ForwardContext& context)>;

// Runs work(i) for every i in `order`, each worker with its own context of one thread. The first
// error stops the rest.
Status RunOnWorkers(const std::vector<size_t>& order, int threads, const Work& work,
                    std::string_view what, const ProgressFn& progress) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  size_t done = 0;
  Status first_error;
  const auto worker = [&] {
    model::v41::ForwardContext context(1);
    for (size_t i = next++; i < order.size() && !failed; i = next++) {
      const Status status = work(order[i], context);
      const std::lock_guard lock(mutex);
      if (!status && !failed.exchange(true)) first_error = status;
      ++done;
      if (progress) progress(what, done, order.size());
    }
  };
  ThreadPool pool(threads);
  DI_RETURN_IF_ERROR(pool.status());
  pool.ParallelFor(threads, 1, [&](int64_t, int64_t, int) { worker(); });
  return first_error;
}

// -log softmax(row)[token]
double NegativeLogLikelihood(std::span<const float> row, int32_t token) {
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float logit : row) sum += std::exp(logit - max);
  return std::log(sum) + max - row[static_cast<size_t>(token)];
}

// Summed over tokens[1..], each predicted from those before it.
Result<double> WindowNats(const Runtime& runtime, model::v41::ForwardContext& context,
                          std::span<const int32_t> tokens) {
  const auto state = runtime.model().NewSequence();
  const size_t vocab = static_cast<size_t>(runtime.config().vocab_size);
  std::vector<float> logits;
  double nats = 0;
  for (size_t begin = 0; begin + 1 < tokens.size();) {
    const size_t size = std::min(tokens.size() - 1 - begin, kChunkTokens);
    const model::v41::SequenceChunk chunk{.state = state.get(),
                                          .tokens = tokens.subspan(begin, size),
                                          .logits_rows = static_cast<int64_t>(size)};
    DI_RETURN_IF_ERROR(runtime.model().Forward(context, {&chunk, 1}, logits));
    for (size_t i = 0; i < size; ++i) {
      nats += NegativeLogLikelihood({logits.data() + i * vocab, vocab}, tokens[begin + i + 1]);
    }
    begin += size;
  }
  if (!std::isfinite(nats)) {
    return MakeError(ErrorCode::kInternal, "the log-likelihood of a text window is {}", nats);
  }
  return nats;
}

}  // namespace

Result<std::vector<TaskResult>> RunEvalTasks(Engine& engine, const std::vector<EvalTask>& tasks,
                                             int64_t max_tokens, const ProgressFn& progress) {
  const SamplingParams sampling{.max_tokens = max_tokens};
  std::vector<PendingCompletion> items;
  for (const EvalTask& task : tasks) {
    for (const EvalItem& item : task.items) {
      auto prompt = ChatPrompt(item.request, engine.runtime().tokenizer());
      if (!prompt) return Forward(std::move(prompt).error(), "item " + item.id);
      auto pending = PendingCompletion::Submit(engine, std::move(*prompt), sampling,
                                               /*run_to_end=*/true);
      if (!pending) return Forward(std::move(pending).error(), "item " + item.id);
      items.push_back(std::move(*pending));
    }
  }
  std::vector<TaskResult> results;
  size_t next = 0;
  for (const EvalTask& task : tasks) {
    TaskResult& result = results.emplace_back();
    result.name = task.name;
    for (const EvalItem& item : task.items) {
      auto completion = items[next++].Wait();
      if (!completion) return Forward(std::move(completion).error(), "item " + item.id);
      result.ids.push_back(item.id);
      if (completion->reason != FinishReason::kStop ||
          !IsCorrect(item.checker, item.answer_json, completion->output)) {
        result.failed_ids.push_back(item.id);
      }
      if (progress) progress("evaluating", next, items.size());
    }
  }
  return results;
}

Result<PerplexityResult> MeasurePerplexity(const Runtime& runtime, std::string_view text,
                                           int threads, const ProgressFn& progress) {
  DI_RETURN_IF_ERROR(RequireUtf8(text, "the held-out text"));
  const std::vector<int32_t> ids = runtime.tokenizer().Encode(text, SpecialTokens::kAsText);
  if (ids.empty()) return MakeError(ErrorCode::kInvalidArgument, "the held-out text is empty");
  PerplexityResult result;
  result.bytes = static_cast<int64_t>(text.size());
  result.tokens = static_cast<int64_t>(ids.size());
  result.window_tokens = std::min(kWindowTokens, runtime.config().max_position_embeddings);

  const size_t step = static_cast<size_t>(result.window_tokens - 1);
  std::vector<std::vector<int32_t>> windows;
  for (size_t begin = 0; begin < ids.size(); begin += step) {
    auto& window = windows.emplace_back(std::vector<int32_t>{runtime.config().bos_token});
    const size_t size = std::min(step, ids.size() - begin);
    window.insert(window.end(), ids.begin() + static_cast<ptrdiff_t>(begin),
                  ids.begin() + static_cast<ptrdiff_t>(begin + size));
  }
  std::vector<double> nats(windows.size(), 0);
  std::vector<size_t> order(windows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Work work = [&](size_t i, model::v41::ForwardContext& context) -> Status {
    DI_ASSIGN_OR_RETURN(nats[i], WindowNats(runtime, context, windows[i]));
    return {};
  };
  DI_RETURN_IF_ERROR(RunOnWorkers(order, threads, work, "perplexity", progress));
  result.nats = std::accumulate(nats.begin(), nats.end(), 0.0);
  return result;
}

}  // namespace deepinfer
