// The engine: one checkpoint that serves any number of requests at once.
//
//   deepinfer::LLM llm(deepinfer::EngineOptions().Set("model", "models/nano"));
//   deepinfer::SamplingParams params{.temperature = 0.7, .seq_seed = 1, .max_tokens = 64};
//   for (const auto& output : llm.Generate({TextPrompt{"It was"}, TextPrompt{"Once"}}, params)) {
//     std::cout << output.outputs[0].text << "\n";
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/error.h"
#include "deepinfer/options.h"
#include "deepinfer/request.h"
#include "deepinfer/result.h"
#include "deepinfer/sampling_params.h"
#include "deepinfer/stats.h"
#include "deepinfer/version.h"

namespace deepinfer {

// Every request gives the same bytes whether it runs alone or among others, whatever the threads
// and the order of arrival (docs/architecture.md, "Rules of determinism"). Thread-safe. Methods
// that can fail throw Exception.
class LLM {
 public:
  // Loads a checkpoint and reserves the engine's memory. Throws where the checkpoint cannot be read
  // or the memory does not fit; the message has the numbers.
  explicit LLM(const EngineOptions& options = EngineOptions::FromEnvironment());
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;
  // Requests in flight end with kCancelled.
  ~LLM();

  // Runs all prompts together and waits. Throws before anything runs if one of them is not allowed;
  // what fails on the way is that output's finish reason. Outputs are in the order of the prompts.
  std::vector<RequestOutput> Generate(std::span<const PromptInput> prompts,
                                      const SamplingParams& params);
  // With parameters of their own: as many as prompts.
  std::vector<RequestOutput> Generate(std::span<const PromptInput> prompts,
                                      std::span<const SamplingParams> params);
  std::vector<RequestOutput> Generate(std::initializer_list<PromptInput> prompts,
                                      const SamplingParams& params) {
    return Generate(std::span(prompts.begin(), prompts.size()), params);
  }

  // Returns at once. Throws for a prompt or parameters that are not allowed.
  RequestHandle Submit(const PromptInput& prompt, const SamplingParams& params,
                       RequestOptions options = {});
  // All prompts with their parameters, as many as prompts. Throws before anything runs if one of
  // them is not allowed, naming its place.
  std::vector<RequestHandle> SubmitAll(std::span<const PromptInput> prompts,
                                       std::span<const SamplingParams> params);

  // Ids of plain text, without a begin-of-sentence token; and the text of ids.
  std::vector<int32_t> Tokenize(std::string_view text) const;
  std::string Detokenize(std::span<const int32_t> token_ids) const;

  EngineStats Stats() const;
  // All metrics in the text format of Prometheus.
  std::string MetricsText() const;
  // What the memory is for, a table for people.
  std::string MemoryText() const;
  // The most tokens that prompt and output together may have.
  int64_t max_model_len() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace deepinfer
