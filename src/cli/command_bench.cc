// deepinfer bench: what the machine reaches at best, and what of it kernels and whole models reach.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "bench/ceilings.h"
#include "bench/kernel_bench.h"
#include "bench/model_bench.h"
#include "bench/record.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "loader/checkpoint_design.h"

namespace deepinfer::cli {
namespace {

constexpr std::string_view kSubjects[] = {"ceiling", "kernel", "prefill", "decode", "load"};
constexpr std::string_view kPresets[] = {"release", "mid", "tiny"};

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// "1,16,64" as integers of a range; the error names flag, part and range.
Result<std::vector<int64_t>> ParseIntegers(std::string_view flag, std::string_view text,
                                           int64_t min, int64_t max) {
  std::vector<int64_t> values;
  for (const std::string& part : SplitList(text)) {
    int64_t value = 0;
    const char* const last = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), last, value);
    if (error != std::errc() || end != last || value < min || value > max) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "--{} \"{}\": \"{}\" is not an integer from {} to {}", flag, text, part, min,
                       max);
    }
    values.push_back(value);
  }
  return values;
}

class BenchCommand final : public Command {
 public:
  std::string name() const override { return "bench"; }
  std::string summary() const override {
    return "Measures the machine's ceilings, kernels, prefill, decode and loading.";
  }
  std::string examples() const override {
    return "  deepinfer bench ceiling\n"
           "  deepinfer bench kernel --kernels gemm --rows 1,64\n"
           "  deepinfer bench prefill --prompt-tokens 512,1024 --modes off,compact\n"
           "  deepinfer bench decode --context 1024,8000 --batch 1,16 --synthetic-context --json\n"
           "  deepinfer bench load\n";
  }

  void Declare(FlagSet& flags) override {
    flags.RequiredPositional("WHAT", what_, "ceiling, kernel, prefill, decode or load.");
    flags.Switch("json", json_, "One JSON object a line instead of a table.");
    flags.Switch("csv", csv_, "Comma-separated values instead of a table.");
    flags.Integer("repeat", repeat_, 1, 10000, "Repetitions of every measurement (default 5).");
    flags.Text("min-time", min_time_, "SECONDS",
               "Least time of one repetition of short work, 0.0001 to 60 (default 0.05).");
    flags.Integer("buffer-mib", buffer_mib_, 1, 1 << 20,
                  "Memory that is read to find the read bandwidth; it must not fit the caches "
                  "(default 1024, or a quarter of the memory).");
    Own(flags, "file", "ceiling", file_, "FILE",
        "File whose mapping is read (default: a temporary one as large as the buffer).");
    Own(flags, "dims", "kernel", dims_, "A,B",
        "Dimensions: release, mid, tiny, or model for those of --model (default release,model).");
    Own(flags, "kernels", "kernel", kernels_, "A,B", "Only these kernels (default all).");
    Own(flags, "rows", "kernel", rows_, "N,N",
        "Rows of products; the other kernels take the least and the greatest (default "
        "1,2,4,8,16,64,256).");
    Own(flags, "prompt-tokens", "prefill", prompt_tokens_, "N,N",
        "Prompt lengths (default 128,1024).");
    Own(flags, "modes", "prefill", modes_, "A,B", "Prefill modes: off, compact (default off).");
    Own(flags, "context", "kernel decode", contexts_, "N,N",
        "Tokens before those that are measured (default 1024).");
    Own(flags, "batch", "decode", batches_, "N,N",
        "Sequences that are decoded together (default 1).");
    flags.Integer("steps", steps_, 1, 1 << 20,
                  "decode: tokens a sequence in one repetition (default 16).");
    flags.Switch("synthetic-context", synthetic_context_,
                 "decode: fill the caches with random records instead of reading a prompt, which "
                 "takes long at great depths.");
    flags.Switch("profile", profile_,
                 "prefill, decode: also the time in every kernel and outside of all.");
    flags.FromTable({"model", "threads", "cpu-pinning", "cpu-target", "check-weights", "weights",
                     "prefill-mode", "prefill-keep-tokens", "max-num-batched-tokens"});
  }

  Status Validate(const ResolvedOptions& options) override {
    if (std::ranges::find(kSubjects, what_) == std::end(kSubjects)) {
      return MakeError(ErrorCode::kInvalidArgument, "bench {}: must be one of {}", what_,
                       fmt::join(kSubjects, ", "));
    }
    if (json_ && csv_) {
      return MakeError(ErrorCode::kInvalidArgument, "give --json or --csv, not both");
    }
    DI_RETURN_IF_ERROR(CheckOwnFlags());
    const auto model = options.sources.find("model");
    if (what_ == "ceiling" && model != options.sources.end() &&
        model->second == OptionSource::kCommandLine) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "--model means nothing to bench ceiling; it is for kernel, prefill, decode, "
                       "load");
    }
    if (what_ == "ceiling" && options.values.cpu_target == "reference") {
      return MakeError(
          ErrorCode::kInvalidArgument,
          "bench ceiling --cpu-target reference: the plain implementation has no loops "
          "of its own to measure; name an instruction set");
    }
    DI_RETURN_IF_ERROR(ReadTiming());
    DI_RETURN_IF_ERROR(ReadKernelFlags());
    DI_RETURN_IF_ERROR(ReadModelFlags(options));
    return SelectTable(options.values).map([](const kernels::KernelTable*) {});
  }

  Result<int> Run(const ResolvedOptions& options) override {
    Status done;
    if (what_ == "ceiling") done = RunCeiling(options);
    if (what_ == "kernel") done = RunKernel(options);
    if (what_ == "prefill" || what_ == "decode") done = RunModel(options);
    if (what_ == "load") done = RunLoad(options);
    if (!done) return Forward(std::move(done).error());
    return kExitOk;
  }

 private:
  // A flag that means something to the subjects named in `subjects` alone.
  void Own(FlagSet& flags, const std::string& name, const std::string& subjects,
           std::optional<std::string>& target, const std::string& value_name,
           const std::string& help) {
    std::string text = subjects;
    std::ranges::replace(text, ' ', ',');
    flags.Text(name, target, value_name, text + ": " + help);
    own_flags_.push_back({name, subjects, &target});
  }

  Status CheckOwnFlags() const {
    const auto check = [&](bool given, std::string_view name, std::string_view subjects) -> Status {
      if (!given || subjects.find(what_) != std::string_view::npos) return {};
      return MakeError(ErrorCode::kInvalidArgument, "--{} means nothing to bench {}; it is for {}",
                       name, what_, subjects);
    };
    for (const OwnFlag& flag : own_flags_) {
      DI_RETURN_IF_ERROR(check(flag.target->has_value(), flag.name, flag.subjects));
    }
    DI_RETURN_IF_ERROR(check(steps_.has_value(), "steps", "decode"));
    DI_RETURN_IF_ERROR(check(synthetic_context_, "synthetic-context", "decode"));
    return check(profile_, "profile", "prefill decode");
  }

  Status ReadTiming() {
    if (repeat_) timing_.repeat = static_cast<int>(*repeat_);
    if (!min_time_) return {};
    double seconds = 0;
    const char* const last = min_time_->data() + min_time_->size();
    const auto [end, error] = std::from_chars(min_time_->data(), last, seconds);
    if (error != std::errc() || end != last || !(seconds >= 1e-4 && seconds <= 60)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "--min-time \"{}\" is not a number from 0.0001 to 60", *min_time_);
    }
    timing_.min_seconds = seconds;
    return {};
  }

  Status ReadKernelFlags() {
    DI_ASSIGN_OR_RETURN(row_counts_,
                        ParseIntegers("rows", rows_.value_or("1,2,4,8,16,64,256"), 1, 1 << 16));
    DI_ASSIGN_OR_RETURN(context_depths_,
                        ParseIntegers("context", contexts_.value_or("1024"), 1, 1 << 24));
    const std::vector<std::string> known = bench::BenchedKernels();
    if (kernels_) kernel_names_ = SplitList(*kernels_);
    for (const std::string& kernel : kernel_names_) {
      if (std::ranges::find(known, kernel) != known.end()) continue;
      return MakeError(ErrorCode::kInvalidArgument, "--kernels: no kernel \"{}\"; there are {}",
                       kernel, fmt::join(known, ", "));
    }
    dimension_names_ = SplitList(dims_.value_or("release,model"));
    for (size_t i = 0; i < dimension_names_.size(); ++i) {
      const std::string& name = dimension_names_[i];
      if (std::find(dimension_names_.begin(), dimension_names_.begin() + i, name) !=
          dimension_names_.begin() + i) {
        return MakeError(ErrorCode::kInvalidArgument, "--dims: \"{}\" stands twice", name);
      }
      if (name == "model" || std::ranges::find(kPresets, name) != std::end(kPresets)) continue;
      return MakeError(ErrorCode::kInvalidArgument, "--dims \"{}\": must be model, {}", name,
                       fmt::join(kPresets, ", "));
    }
    return {};
  }

  Status ReadModelFlags(const ResolvedOptions& options) {
    const Options& values = options.values;
    DI_ASSIGN_OR_RETURN(
        prefill_.prompt_tokens,
        ParseIntegers("prompt-tokens", prompt_tokens_.value_or("128,1024"), 1, 1 << 24));
    prefill_.modes = {values.prefill_mode};
    if (modes_) prefill_.modes.clear();
    for (const std::string& mode : SplitList(modes_.value_or(""))) {
      if (!modes_) break;
      if (mode != "off" && mode != "compact") {
        return MakeError(ErrorCode::kInvalidArgument, "--modes \"{}\": must be off or compact",
                         mode);
      }
      prefill_.modes.push_back(mode == "off" ? PrefillMode::kOff : PrefillMode::kCompact);
    }
    prefill_.keep_tokens = values.prefill_keep_tokens;
    prefill_.chunk_tokens = values.max_num_batched_tokens;
    DI_ASSIGN_OR_RETURN(decode_.batches,
                        ParseIntegers("batch", batches_.value_or("1"), 1, 1 << 16));
    decode_.contexts = context_depths_;
    decode_.steps = steps_.value_or(decode_.steps);
    decode_.prefill = PrefillPolicyOf(values);
    decode_.chunk_tokens = values.max_num_batched_tokens;
    decode_.synthetic_context = synthetic_context_;
    return {};
  }

  static Result<const kernels::KernelTable*> SelectTable(const Options& values) {
    if (values.cpu_target == "reference") return &kernels::reference::Table();
    return kernels::cpu::SelectTarget(values.cpu_target);
  }

  size_t BufferBytes() const {
    if (!buffer_mib_) return bench::DefaultBufferBytes();
    const size_t bytes = static_cast<size_t>(*buffer_mib_) << 20;
    if (bytes < 2 * bench::CacheBytes()) {
      PrintNote(
          fmt::format("[a buffer of {} MiB partly fits the caches of {} MiB: what is measured "
                      "is no memory bandwidth]",
                      *buffer_mib_, bench::CacheBytes() >> 20));
    }
    return bytes;
  }

  // The header stands before the first record, so that nothing but an error is printed where
  // nothing can be measured.
  Status Line(const std::string& line) {
    if (!json_ && !header_written_) {
      header_written_ = true;
      const std::string header = csv_ ? bench::CsvHeader() : bench::TableHeader();
      DI_RETURN_IF_ERROR(StandardOutput().Write(header + "\n"));
    }
    DI_RETURN_IF_ERROR(StandardOutput().Write(line + "\n"));
    return StandardOutput().Flush();
  }

  // Every record is out before the next is measured, so that an interrupt loses none.
  bench::RecordSink Sink() {
    return [this](const bench::Record& record) {
      if (progress_) progress_("", 1, 1);
      return Line(json_  ? bench::RecordJson(record)
                  : csv_ ? bench::RecordCsv(record)
                         : bench::RecordRow(record));
    };
  }

  Status RunCeiling(const ResolvedOptions& options) {
    bench::CeilingBenchSettings settings{.timing = timing_,
                                         .threads = ThreadCount(options.values.threads),
                                         .placement = ProgramPlacement(options.values),
                                         .buffer_bytes = BufferBytes(),
                                         .file = file_.value_or("")};
    const kernels::KernelTable* table = nullptr;
    if (options.values.cpu_target != "auto") {
      DI_ASSIGN_OR_RETURN(table, SelectTable(options.values));
    }
    return bench::RunCeilingBench(table, settings, Sink(), progress_);
  }

  Result<bench::Dimensions> DimensionsOf(const ResolvedOptions& options, const std::string& name) {
    std::string json;
    std::string shown = name;
    if (name == "model") {
      DI_ASSIGN_OR_RETURN(const std::filesystem::path folder,
                          ChooseModel(options, /*needs_weights=*/false));
      DI_ASSIGN_OR_RETURN(json, ReadFile(folder / "config.json"));
      shown = folder.filename().string();
    } else {
      CheckpointDesign design;
      design.preset = name;
      DI_ASSIGN_OR_RETURN(json, DesignConfig(design));
    }
    DI_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(json));
    return bench::Dimensions{shown, std::move(config)};
  }

  Status RunKernel(const ResolvedOptions& options) {
    bench::KernelBenchSettings settings{.timing = timing_,
                                        .rows = row_counts_,
                                        .contexts = context_depths_,
                                        .kernels = kernel_names_,
                                        .buffer_bytes = BufferBytes()};
    for (const std::string& name : dimension_names_) {
      DI_ASSIGN_OR_RETURN(bench::Dimensions dimensions, DimensionsOf(options, name));
      const int64_t limit = dimensions.config.max_position_embeddings;
      for (const int64_t context : context_depths_) {
        if (context < limit) continue;
        return MakeError(ErrorCode::kInvalidArgument,
                         "--context {}: the dimensions {} have contexts of at most {} tokens",
                         context, name, limit);
      }
      settings.dimensions.push_back(std::move(dimensions));
    }
    DI_ASSIGN_OR_RETURN(const kernels::KernelTable* table, SelectTable(options.values));
    ThreadPool pool(ThreadCount(options.values.threads), ProgramPlacement(options.values));
    DI_RETURN_IF_ERROR(pool.status());
    return bench::RunKernelBench(*table, pool, settings, Sink(), progress_);
  }

  Status RunModel(const ResolvedOptions& options) {
    DI_ASSIGN_OR_RETURN(const std::filesystem::path folder, ChooseModel(options));
    const bench::ModelBenchSettings settings{.timing = timing_,
                                             .threads = ThreadCount(options.values.threads),
                                             .placement = ProgramPlacement(options.values),
                                             .buffer_bytes = BufferBytes(),
                                             .profile = profile_};
    const bench::RecordSink sink = Sink();
    DI_ASSIGN_OR_RETURN(const auto model,
                        bench::ModelBench::Load(folder, RuntimeOptionsOf(options.values), settings,
                                                sink, progress_));
    return what_ == "prefill" ? model->Prefill(prefill_) : model->Decode(decode_);
  }

  Status RunLoad(const ResolvedOptions& options) {
    DI_ASSIGN_OR_RETURN(const std::filesystem::path folder, ChooseModel(options));
    const bench::LoadBenchSettings settings{timing_, ThreadCount(options.values.threads),
                                            ProgramPlacement(options.values)};
    return bench::RunLoadBench(folder, RuntimeOptionsOf(options.values), settings, Sink(),
                               progress_);
  }

  struct OwnFlag {
    std::string name;
    std::string subjects;
    const std::optional<std::string>* target;
  };

  std::string what_;
  bool header_written_ = false;
  bool json_ = false, csv_ = false, profile_ = false, synthetic_context_ = false;
  std::optional<int64_t> repeat_, buffer_mib_, steps_;
  std::optional<std::string> min_time_, file_, dims_, kernels_, rows_, prompt_tokens_, modes_,
      contexts_, batches_;
  std::vector<OwnFlag> own_flags_;

  bench::TimingSettings timing_;
  std::vector<int64_t> row_counts_, context_depths_;
  std::vector<std::string> kernel_names_, dimension_names_;
  bench::PrefillBenchSettings prefill_;
  bench::DecodeBenchSettings decode_;
  const ProgressFn progress_ = TerminalProgress();
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace deepinfer::cli
