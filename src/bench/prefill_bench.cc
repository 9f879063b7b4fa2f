// Prompts: tokens a second and how much of the multiply units the products use.
#include <algorithm>
#include <chrono>

#include "bench/model_bench.h"

namespace deepinfer::bench {

Status ModelBench::Prefill(const PrefillBenchSettings& settings) {
  const ModelConfig& config = runtime_->config();
  for (const int64_t tokens : settings.prompt_tokens) {
    if (tokens <= config.max_position_embeddings) continue;
    return MakeError(ErrorCode::kInvalidArgument,
                     "--prompt-tokens {}: the context of this checkpoint is {} tokens", tokens,
                     config.max_position_embeddings);
  }
  std::vector<PrefillPolicy> policies;
  for (const PrefillMode mode : settings.modes) {
    policies.push_back({mode, settings.keep_tokens});
    DI_RETURN_IF_ERROR(ValidatePrefillPolicy(policies.back(), config));
  }
  for (const int64_t tokens : settings.prompt_tokens) {
    for (const PrefillPolicy& policy : policies) {
      DI_RETURN_IF_ERROR(PrefillCase(tokens, policy, settings.chunk_tokens));
    }
  }
  return {};
}

Status ModelBench::PrefillCase(int64_t tokens, const PrefillPolicy& policy, int64_t chunk_tokens) {
  const std::vector<int32_t> prompt = RandomTokens(tokens, 1);
  const Ceilings ceilings = meter_.Measure(context_->pool(), settings_.timing);
  KernelProfile profile(*table_);
  std::vector<double> seconds, gemm_seconds;
  double operations = 0;
  // The first run loads the weights' pages and grows the scratch memory.
  for (int run = 0; run <= settings_.timing.repeat; ++run) {
    Progress("measuring prefill", static_cast<uint64_t>(run),
             static_cast<uint64_t>(settings_.timing.repeat + 1));
    if (run <= 1) profile.Clear();
    const double gemm_before = profile.gemm_seconds(),
                 operations_before = profile.gemm_operations();
    const auto start = std::chrono::steady_clock::now();
    DI_RETURN_IF_ERROR(RunPrefill(*profiled_model_, prompt, policy, chunk_tokens));
    if (run == 0) continue;
    seconds.push_back(SecondsSince(start));
    gemm_seconds.push_back(profile.gemm_seconds() - gemm_before);
    operations = profile.gemm_operations() - operations_before;
  }
  std::vector<Param> params =
      Params({{"prompt_tokens", tokens},
              {"mode", std::string(policy.mode == PrefillMode::kOff ? "off" : "compact")},
              {"chunk_tokens", chunk_tokens}});
  const Timing timing = Summarise(seconds);
  Record speed{.name = "prefill.speed", .params = params, .unit = "tokens/s"};
  SetRate(timing, static_cast<double>(tokens), 1, std::nullopt, speed);
  Record gemm{.name = "prefill.gemm", .params = params, .unit = "GFLOP/s"};
  SetRate(Summarise(gemm_seconds), operations, 1e9, ceilings.operations / 1e9, gemm);
  Record whole{.name = "prefill.end_to_end", .params = params, .unit = "GFLOP/s"};
  SetRate(timing, operations, 1e9, ceilings.operations / 1e9, whole);
  for (const Record* record : {&speed, &gemm, &whole}) DI_RETURN_IF_ERROR(sink_(*record));
  if (!settings_.profile) return {};
  double total = 0;
  for (const double s : seconds) total += s;
  return Profile("prefill.profile", params, profile, total, settings_.timing.repeat);
}

}  // namespace deepinfer::bench
