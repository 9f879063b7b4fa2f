#include "deepinfer/llm.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/engine.h"
#include "engine/prompt.h"
#include "engine/public_error.h"
#include "engine/public_options.h"
#include "engine/request.h"
#include "engine/text.h"
#include "loader/model_resolver.h"

namespace deepinfer {
namespace {

std::filesystem::path CheckpointFolder(const Options& options) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  ModelQuery query;
  query.model = options.model;
  query.environment = ProcessEnvironment();
  if (!error) query.executable_folder = self.parent_path();
  query.current_folder = std::filesystem::current_path(error);
  return ValueOrThrow(ResolveModel(query)).folder;
}

struct PromptReader {
  const Runtime& runtime;

  Result<std::vector<int32_t>> operator()(const TextPrompt& prompt) const {
    DI_ASSIGN_OR_RETURN(Prompt read, RawPrompt(prompt.text, runtime.tokenizer(), runtime.config()));
    return std::move(read.tokens);
  }
  Result<std::vector<int32_t>> operator()(const TokensPrompt& prompt) const {
    return prompt.token_ids;
  }
  Result<std::vector<int32_t>> operator()(const ChatMessages& prompt) const {
    DI_RETURN_IF_ERROR(RequireUtf8(prompt.json, "the chat"));
    DI_ASSIGN_OR_RETURN(const ChatRequest request, ParseChatRequest(prompt.json, {}));
    DI_ASSIGN_OR_RETURN(Prompt read, ChatPrompt(request, runtime.tokenizer()));
    return std::move(read.tokens);
  }
};

}  // namespace

void ThrowError(const Error& error) {
  using Kind = Exception::Kind;
  Kind kind = Kind::kInternal;
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      kind = Kind::kInvalidArgument;
      break;
    case ErrorCode::kNotFound:
      kind = Kind::kNotFound;
      break;
    case ErrorCode::kDataLoss:
      kind = Kind::kDataLoss;
      break;
    case ErrorCode::kUnsupported:
      kind = Kind::kUnsupported;
      break;
    case ErrorCode::kResourceExhausted:
      kind = Kind::kResourceExhausted;
      break;
    case ErrorCode::kIo:
      kind = Kind::kIo;
      break;
    case ErrorCode::kCancelled:
      kind = Kind::kCancelled;
      break;
    case ErrorCode::kInternal:
      break;
  }
  throw Exception(kind, error.message);
}

std::string_view Version() { return DEEPINFER_VERSION; }

struct LLM::State {
  std::unique_ptr<Engine> engine;

  const Tokenizer& tokenizer() const { return engine->runtime().tokenizer(); }
  EngineRequest Read(const PromptInput& prompt, const SamplingParams& params) const {
    return {.prompt = ValueOrThrow(std::visit(PromptReader{engine->runtime()}, prompt)),
            .sampling = params,
            .options = {}};
  }
};

LLM::LLM(const EngineOptions& options) : state_(std::make_unique<State>()) {
  const Options& values = options.state_->values;
  auto runtime = ValueOrThrow(Runtime::Load(CheckpointFolder(values), RuntimeOptionsOf(values)));
  state_->engine = ValueOrThrow(Engine::Create(std::move(runtime), EngineSettingsOf(values)));
}
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;
LLM::~LLM() = default;

std::vector<RequestOutput> LLM::Generate(std::span<const PromptInput> prompts,
                                         const SamplingParams& params) {
  return Generate(prompts, std::vector<SamplingParams>(prompts.size(), params));
}

std::vector<RequestOutput> LLM::Generate(std::span<const PromptInput> prompts,
                                         std::span<const SamplingParams> params) {
  std::vector<RequestOutput> outputs;
  for (RequestHandle& handle : SubmitAll(prompts, params)) outputs.push_back(handle.Wait());
  return outputs;
}

std::vector<RequestHandle> LLM::SubmitAll(std::span<const PromptInput> prompts,
                                          std::span<const SamplingParams> params) {
  if (prompts.size() != params.size()) {
    throw Exception(
        Exception::Kind::kInvalidArgument,
        fmt::format("{} prompts come with {} parameters", prompts.size(), params.size()));
  }
  std::vector<EngineRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    try {
      requests.push_back(state_->Read(prompts[i], params[i]));
      if (Status status = state_->engine->Check(requests.back()); !status) {
        ThrowError(status.error());
      }
    } catch (const Exception& e) {
      throw Exception(e.kind(), fmt::format("prompt {}: {}", i, e.what()));
    }
  }
  std::vector<RequestHandle> handles;
  for (EngineRequest& request : requests) {
    handles.emplace_back(ValueOrThrow(state_->engine->Submit(std::move(request))));
  }
  return handles;
}

RequestHandle LLM::Submit(const PromptInput& prompt, const SamplingParams& params,
                          RequestOptions options) {
  EngineRequest request = state_->Read(prompt, params);
  request.options = std::move(options);
  return RequestHandle(ValueOrThrow(state_->engine->Submit(std::move(request))));
}

std::vector<int32_t> LLM::Tokenize(std::string_view text) const {
  return state_->tokenizer().Encode(text, SpecialTokens::kAsText);
}
std::string LLM::Detokenize(std::span<const int32_t> token_ids) const {
  return state_->tokenizer().Decode(token_ids);
}

EngineStats LLM::Stats() const { return state_->engine->stats(); }
std::string LLM::MetricsText() const { return state_->engine->MetricsText(); }
std::string LLM::MemoryText() const { return FormatMemory(state_->engine->memory()); }
int64_t LLM::max_model_len() const { return state_->engine->max_model_len(); }

uint64_t RequestHandle::id() const { return stream_->id(); }
std::optional<OutputDelta> RequestHandle::Next() { return stream_->Next(); }
std::optional<OutputDelta> RequestHandle::NextWithin(std::chrono::milliseconds time) {
  return stream_->NextWithin(time);
}
RequestOutput RequestHandle::Wait() { return stream_->Wait(); }
std::optional<RequestOutput> RequestHandle::WaitFor(std::chrono::milliseconds time) {
  return stream_->WaitFor(time);
}
bool RequestHandle::finished() const { return stream_->finished(); }
RequestOutput RequestHandle::Snapshot() const { return stream_->Snapshot(); }
void RequestHandle::Cancel() { stream_->Cancel(); }

}  // namespace deepinfer
