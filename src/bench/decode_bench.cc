// Decoding: tokens a second and how much of the memory's bandwidth the weights use.
#include <algorithm>
#include <chrono>

#include "bench/model_bench.h"
#include "loader/checkpoint_report.h"
#include "model/v41/synthetic_context.h"
#include "sampling/sampler.h"

namespace deepinfer::bench {

namespace {
// Steps before the first measured one.
constexpr int64_t kWarmUpSteps = 2;
}  // namespace

struct ModelBench::DecodeCase {
  std::vector<std::unique_ptr<model::v41::SequenceState>> states;
  std::vector<int32_t> tokens;  // the next of every sequence
  std::vector<model::v41::SequenceChunk> chunks;
  model::v41::HeadOutput head{.topk = 1};
};

Status ModelBench::CheckDecode(const DecodeBenchSettings& settings) const {
  const ModelConfig& config = runtime_->config();
  DI_RETURN_IF_ERROR(ValidatePrefillPolicy(settings.prefill, config));
  const int64_t measured = kWarmUpSteps + settings.steps * (settings_.timing.repeat + 1);
  for (const int64_t context : settings.contexts) {
    if (context + measured <= config.max_position_embeddings) continue;
    return MakeError(ErrorCode::kInvalidArgument,
                     "--context {}: {} tokens are decoded after it, and the context of this "
                     "checkpoint is {} tokens",
                     context, measured, config.max_position_embeddings);
  }
  return {};
}

Status ModelBench::Decode(const DecodeBenchSettings& settings) {
  DI_RETURN_IF_ERROR(CheckDecode(settings));
  for (const int64_t context : settings.contexts) {
    for (const int64_t batch : settings.batches) {
      DI_RETURN_IF_ERROR(RunDecodeCase(settings, batch, context));
    }
  }
  return {};
}

Result<ModelBench::DecodeCase> ModelBench::MakeDecodeCase(const DecodeBenchSettings& settings,
                                                          int64_t batch, int64_t context) {
  DecodeCase decode;
  const int64_t decoder_start =
      settings.synthetic_context ? 0 : DecoderStart(settings.prefill, context);
  decode.tokens = RandomTokens(batch, 0);
  for (int64_t i = 0; i < batch; ++i) {
    const auto seed = static_cast<uint64_t>(i + 1);
    if (settings.synthetic_context) {
      decode.states.push_back(runtime_->model().NewSequence());
      model::v41::SyntheticContext::Extend(runtime_->config(), context, seed,
                                           *decode.states.back());
    } else {
      DI_ASSIGN_OR_RETURN(auto state, RunPrefill(runtime_->model(), RandomTokens(context, seed),
                                                 settings.prefill, settings.chunk_tokens));
      decode.states.push_back(std::move(state));
    }
  }
  for (size_t i = 0; i < decode.tokens.size(); ++i) {
    decode.chunks.push_back({.state = decode.states[i].get(),
                             .tokens = {&decode.tokens[i], 1},
                             .decoder_start = decoder_start,
                             .logits_rows = 1});
  }
  return decode;
}

Status ModelBench::Step(const model::v41::Model& model, DecodeCase& decode) {
  // As the generator's greedy path: the best logit of each row, which is never written whole.
  DI_RETURN_IF_ERROR(model.Forward(*context_, decode.chunks, decode.head));
  for (size_t i = 0; i < decode.tokens.size(); ++i) {
    DI_ASSIGN_OR_RETURN(decode.tokens[i], BestToken(decode.head.logits[i], decode.head.ids[i],
                                                    runtime_->config().vocab_size));
  }
  return {};
}

Status ModelBench::RunDecodeCase(const DecodeBenchSettings& settings, int64_t batch,
                                 int64_t context) {
  const model::v41::Model& model = runtime_->model();
  DI_ASSIGN_OR_RETURN(DecodeCase decode, MakeDecodeCase(settings, batch, context));
  for (int64_t i = 0; i < kWarmUpSteps; ++i) DI_RETURN_IF_ERROR(Step(model, decode));

  KernelProfile profile(*table_);
  const auto profile_start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < settings.steps; ++i) DI_RETURN_IF_ERROR(Step(*profiled_model_, decode));
  const double profile_seconds = SecondsSince(profile_start);

  const Ceilings ceilings = meter_.Measure(context_->pool(), settings_.timing);
  std::vector<double> seconds;  // of a step
  for (int run = 0; run < settings_.timing.repeat; ++run) {
    Progress("measuring decode", static_cast<uint64_t>(run),
             static_cast<uint64_t>(settings_.timing.repeat));
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < settings.steps; ++i) DI_RETURN_IF_ERROR(Step(model, decode));
    seconds.push_back(SecondsSince(start) / static_cast<double>(settings.steps));
  }

  const ActiveBytes active =
      BuildCheckpointReport(runtime_->config(), runtime_->checkpoint().tensors()).active;
  const auto steps = static_cast<double>(settings.steps);
  const double step_bytes =
      batch == 1 ? static_cast<double>(active.token())
                 : static_cast<double>(active.dense) + profile.fp4_bytes() / steps +
                       static_cast<double>(batch * (active.embedding_row + active.engram_rows));
  const std::vector<Param> params =
      Params({{"batch", batch},
              {"context", context},
              {"context_kind", std::string(settings.synthetic_context ? "synthetic" : "prefill")},
              {"steps", settings.steps},
              {"active_bytes", active.token()},
              {"step_bytes", static_cast<int64_t>(step_bytes)}});
  const Timing timing = Summarise(seconds);
  const auto tokens = static_cast<double>(batch);
  Record speed{.name = "decode.speed", .params = params, .unit = "tokens/s"};
  SetRate(timing, tokens, 1, tokens * ceilings.read_bytes / step_bytes, speed);
  Record weights{.name = "decode.weights", .params = params, .unit = "GB/s"};
  SetRate(timing, step_bytes, 1e9, ceilings.read_bytes / 1e9, weights);
  for (const Record* record : {&speed, &weights}) DI_RETURN_IF_ERROR(sink_(*record));
  if (!settings_.profile) return {};
  return Profile("decode.profile", params, profile, profile_seconds, steps);
}

}  // namespace deepinfer::bench
