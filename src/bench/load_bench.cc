// Loading: seconds with and without the page cache, and what stays in memory.
#include <algorithm>
#include <chrono>

#include "base/page_cache.h"
#include "base/resident_memory.h"
#include "bench/model_bench.h"

namespace deepinfer::bench {
namespace {

constexpr int64_t kPageBytes = 4096;

class LoadBench {
 public:
  LoadBench(const std::filesystem::path& folder, const RuntimeOptions& options,
            const LoadBenchSettings& settings, const RecordSink& sink)
      : folder_(folder), options_(options), settings_(settings), sink_(sink) {}

  Status Run(const ProgressFn& progress) {
    DI_RETURN_IF_ERROR(FindFiles());
    for (int run = 0; run < settings_.timing.repeat; ++run) {
      if (progress) {
        progress("measuring loads", static_cast<uint64_t>(run),
                 static_cast<uint64_t>(settings_.timing.repeat));
      }
      for (const bool cold : {true, false}) DI_RETURN_IF_ERROR(RunOnce(cold));
    }
    for (const bool cold : {true, false}) DI_RETURN_IF_ERROR(Report(cold));
    return {};
  }

 private:
  struct Samples {
    std::vector<double> load, first_token;
    std::vector<double> anonymous, file_backed;  // bytes
    uint64_t cached_bytes = 0;                   // before loading, the most of any run
  };

  Status FindFiles() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().extension() == ".safetensors") files_.push_back(entry.path());
    }
    if (!error && !files_.empty()) return {};
    return MakeError(ErrorCode::kNotFound, "no weight files (*.safetensors) in {}{}",
                     folder_.string(), error ? ": " + error.message() : "");
  }

  Result<uint64_t> Cached() const {
    uint64_t bytes = 0;
    for (const auto& file : files_) {
      DI_ASSIGN_OR_RETURN(const uint64_t cached, CachedBytes(file));
      bytes += cached;
    }
    return bytes;
  }

  Status Prepare(bool cold) const {
    for (const auto& path : files_) {
      if (cold) {
        DI_RETURN_IF_ERROR(DropCachedPages(path));
        continue;
      }
      DI_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
      volatile std::byte seen{};
      for (size_t i = 0; i < file.bytes().size(); i += kPageBytes) seen = file.bytes()[i];
      static_cast<void>(seen);
    }
    return {};
  }

  Status RunOnce(bool cold) {
    Samples& samples = samples_[cold ? 0 : 1];
    DI_RETURN_IF_ERROR(Prepare(cold));
    DI_ASSIGN_OR_RETURN(const uint64_t cached, Cached());
    samples.cached_bytes = std::max(samples.cached_bytes, cached);
    DI_ASSIGN_OR_RETURN(const ResidentMemory before, ReadResidentMemory());
    const auto start = std::chrono::steady_clock::now();
    DI_ASSIGN_OR_RETURN(const auto runtime, Runtime::Load(folder_, options_));
    samples.load.push_back(SecondsSince(start));
    model::v41::ForwardContext context(settings_.threads, settings_.placement);
    DI_RETURN_IF_ERROR(context.pool().status());
    const auto state = runtime->model().NewSequence();
    const int32_t token = runtime->config().bos_token;
    const model::v41::SequenceChunk chunk{
        .state = state.get(), .tokens = {&token, 1}, .logits_rows = 1};
    std::vector<float> logits;
    DI_RETURN_IF_ERROR(runtime->model().Forward(context, {&chunk, 1}, logits));
    samples.first_token.push_back(SecondsSince(start));
    DI_ASSIGN_OR_RETURN(const ResidentMemory after, ReadResidentMemory());
    const auto growth = [](uint64_t now, uint64_t then) {
      return now > then ? static_cast<double>(now - then) : 0.0;
    };
    samples.anonymous.push_back(growth(after.anonymous, before.anonymous));
    samples.file_backed.push_back(growth(after.file_backed, before.file_backed));
    weight_bytes_ = runtime->checkpoint().total_bytes();
    target_ = runtime->cpu_target();
    return {};
  }

  Status Report(bool cold) const {
    const Samples& samples = samples_[cold ? 0 : 1];
    const std::vector<Param> params = {{"cache", std::string(cold ? "cold" : "warm")},
                                       {"cached_bytes", static_cast<int64_t>(samples.cached_bytes)},
                                       {"model", folder_.filename().string()},
                                       {"weight_bytes", static_cast<int64_t>(weight_bytes_)},
                                       {"threads", int64_t{settings_.threads}},
                                       {"target", target_}};
    const auto emit = [&](const char* name, const std::vector<double>& values, bool seconds,
                          std::vector<Param> more) {
      const Timing t = Summarise(values);
      Record record{.name = name, .params = params, .unit = seconds ? "s" : "bytes"};
      record.params.insert(record.params.end(), more.begin(), more.end());
      record.value = t.median;
      record.min = t.min;
      record.max = t.max;
      record.repetitions = t.repetitions;
      if (seconds) record.seconds = t.median;
      if (!seconds) record.share = t.median / static_cast<double>(weight_bytes_);
      return sink_(record);
    };
    DI_RETURN_IF_ERROR(emit("load.time", samples.load, true, {}));
    DI_RETURN_IF_ERROR(emit("load.first_token", samples.first_token, true, {}));
    DI_RETURN_IF_ERROR(emit("load.resident", samples.file_backed, false,
                            {{"memory", std::string("file_backed")}}));
    return emit("load.resident", samples.anonymous, false, {{"memory", std::string("anonymous")}});
  }

  const std::filesystem::path& folder_;
  const RuntimeOptions& options_;
  const LoadBenchSettings& settings_;
  const RecordSink& sink_;
  std::vector<std::filesystem::path> files_;
  Samples samples_[2];  // cold, warm
  uint64_t weight_bytes_ = 1;
  std::string target_;
};

}  // namespace

Status RunLoadBench(const std::filesystem::path& folder, const RuntimeOptions& options,
                    const LoadBenchSettings& settings, const RecordSink& sink,
                    const ProgressFn& progress) {
  return LoadBench(folder, options, settings, sink).Run(progress);
}

}  // namespace deepinfer::bench
