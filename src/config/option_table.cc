#include "config/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

namespace deepinfer {
namespace {

// Choices stand in the order of the enumerators, so an index is a value.
constexpr std::string_view kPrefillModes[] = {"off", "compact"};
constexpr std::string_view kCheckWeights[] = {"auto", "all", "none"};
constexpr std::string_view kWeights[] = {"map", "load"};
constexpr std::string_view kCpuPinnings[] = {"auto", "off"};
constexpr std::string_view kCpuTargets[] = {"auto",   "reference",   "scalar", "avx2",
                                            "avx512", "avx512_bf16", "neon"};
constexpr std::string_view kPrefixCachings[] = {"off", "fast", "deterministic"};
constexpr std::string_view kPrefixEvictions[] = {"lru", "s3-fifo"};
constexpr std::string_view kLogprobsModes[] = {"raw", "processed"};
constexpr std::string_view kLogLevels[] = {"debug", "info", "warning", "error", "off"};

// Parses all of `text`; no sign but '-', no spaces.
template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

tl::unexpected<Error> NotAllowed(const OptionSpec& spec, std::string_view text) {
  return MakeError(ErrorCode::kInvalidArgument, "\"{}\" is not {}", text, AllowedValues(spec));
}

template <auto Field>
Status Set(const OptionSpec& spec, std::string_view text, Options& options) {
  auto& field = options.*Field;
  using T = std::remove_reference_t<decltype(field)>;
  if constexpr (std::is_same_v<T, std::string>) {
    const bool allowed = spec.kind == OptionKind::kChoice
                             ? std::ranges::find(spec.choices, text) != spec.choices.end()
                             : !text.empty();
    if (!allowed) return NotAllowed(spec, text);
    field = text;
    return {};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    int64_t value = 0;
    if (!ParseNumber(text, value) || value < spec.integer_min || value > spec.integer_max) {
      return NotAllowed(spec, text);
    }
    field = value;
    return {};
  } else if constexpr (std::is_same_v<T, double>) {
    double value = 0;
    const bool inside = ParseNumber(text, value) && std::isfinite(value) && value <= spec.max &&
                        (spec.min_is_open ? value > spec.min : value >= spec.min);
    if (!inside) return NotAllowed(spec, text);
    field = value;
    return {};
  } else {
    static_assert(std::is_enum_v<T>);
    for (size_t i = 0; i < spec.choices.size(); ++i) {
      if (spec.choices[i] != text) continue;
      field = static_cast<T>(i);
      return {};
    }
    return NotAllowed(spec, text);
  }
}

template <auto Field>
std::string Get(const Options& options) {
  return fmt::format("{}", options.*Field);  // the shortest text that reads back the same
}

template <auto Field, const auto& Choices>
std::string GetChoice(const Options& options) {
  return std::string(Choices[static_cast<size_t>(options.*Field)]);
}

template <auto Field>
constexpr OptionSpec Text(std::string_view name, std::string_view environment,
                          std::string_view value_name, std::string_view help) {
  return {.name = name,
          .environment = environment,
          .value_name = value_name,
          .kind = OptionKind::kText,
          .help = help,
          .set = Set<Field>,
          .get = Get<Field>};
}

template <auto Field>
constexpr OptionSpec Integer(std::string_view name, std::string_view environment, int64_t min,
                             int64_t max, std::string_view help) {
  OptionSpec spec = Text<Field>(name, environment, "N", help);
  spec.kind = OptionKind::kInteger;
  spec.integer_min = min;
  spec.integer_max = max;
  return spec;
}

struct RealRange {
  double min;
  double max;
  bool min_is_open = false;
};

template <auto Field>
constexpr OptionSpec Real(std::string_view name, std::string_view environment, RealRange range,
                          std::string_view help) {
  OptionSpec spec = Text<Field>(name, environment, "X", help);
  spec.kind = OptionKind::kReal;
  spec.min = range.min;
  spec.max = range.max;
  spec.min_is_open = range.min_is_open;
  return spec;
}

template <auto Field, const auto& Choices>
constexpr OptionSpec Choice(std::string_view name, std::string_view environment,
                            std::string_view value_name, std::string_view help) {
  return {.name = name,
          .environment = environment,
          .value_name = value_name,
          .kind = OptionKind::kChoice,
          .choices = Choices,
          .help = help,
          .set = Set<Field>,
          .get = GetChoice<Field, Choices>};
}

// A text field that takes one of the choices.
template <auto Field, const auto& Choices>
constexpr OptionSpec TextChoice(std::string_view name, std::string_view environment,
                                std::string_view value_name, std::string_view help) {
  OptionSpec spec = Text<Field>(name, environment, value_name, help);
  spec.kind = OptionKind::kChoice;
  spec.choices = Choices;
  return spec;
}

constexpr OptionSpec kTable[] = {
    Text<&Options::model>(
        "model", "DEEPINFER_HF_MODEL_DIR", "DIR",
        "Checkpoint folder, or ORG/NAME in the Hugging Face cache; without one that "
        "cache is searched for the release, then models/nano is taken."),
    Integer<&Options::threads>("threads", "DEEPINFER_THREADS", 0, 1024,
                               "Worker threads; 0 takes one for each core that the process may "
                               "use, within its control group's CPU limit. Results do not depend "
                               "on it."),
    Choice<&Options::cpu_pinning, kCpuPinnings>(
        "cpu-pinning", "DEEPINFER_CPU_PINNING", "MODE",
        "auto binds each worker thread to the cores of one memory node on machines with several, "
        "unless there are more threads than cores; off leaves threads to the system."),
    TextChoice<&Options::cpu_target, kCpuTargets>(
        "cpu-target", "DEEPINFER_CPU_TARGET", "NAME",
        "Instruction set of the kernels: auto takes the best that the processor has; scalar, avx2, "
        "avx512, avx512_bf16 (x86-64), neon (Arm), or reference, the plain implementation. The "
        "last bits of results may differ between targets, never within one."),
    Choice<&Options::log_level, kLogLevels>("log-level", "DEEPINFER_LOG_LEVEL", "LEVEL",
                                            "The least severe messages that are printed to "
                                            "standard error."),
    Choice<&Options::check_weights, kCheckWeights>(
        "check-weights", "DEEPINFER_CHECK_WEIGHTS", "WHICH",
        "Weights that are searched for NaN, infinity and scales out of range while loading; auto "
        "takes all up to 1 GiB and, in a larger checkpoint, all but the codes of routed experts "
        "and the Engram tables."),

    Choice<&Options::weights, kWeights>(
        "weights", "DEEPINFER_WEIGHTS", "HOW",
        "map maps the weight files, which starts at once and shares their pages with other "
        "processes; load reads them into huge pages first, which decodes faster and needs memory "
        "for all of them."),

    Choice<&Options::prefill_mode, kPrefillModes>(
        "prefill-mode", "DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", "MODE",
        "off runs every layer on every prompt token (exact); compact runs the decoder half only "
        "on the prompt's last tokens."),
    Integer<&Options::prefill_keep_tokens>(
        "prefill-keep-tokens", "DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", 1, 1 << 20,
        "Tokens at the prompt's end that compact mode runs through the decoder half; the "
        "checkpoint's sliding window sets a lower bound, checked when it is loaded."),

    Integer<&Options::max_model_len>(
        "max-model-len", "DEEPINFER_MAX_MODEL_LEN", 0, int64_t{1} << 30,
        "Most tokens of a prompt and its answer together; 0 takes the checkpoint's context, or as "
        "much of it as the KV cache holds."),
    Integer<&Options::max_num_seqs>("max-num-seqs", "DEEPINFER_MAX_NUM_SEQS", 1, 1 << 16,
                                    "Sequences that run at once; others wait."),
    Integer<&Options::max_num_batched_tokens>(
        "max-num-batched-tokens", "DEEPINFER_MAX_NUM_BATCHED_TOKENS", 1, 1 << 24,
        "Tokens in one forward pass, of prompts and answers together; at least max-num-seqs and "
        "two "
        "blocks. Results do not depend on it; memory and the time between two tokens of an answer "
        "do."),
    Integer<&Options::block_size>("block-size", "DEEPINFER_BLOCK_SIZE", 2, 1 << 16,
                                  "Tokens in a block of the KV cache; even."),
    Integer<&Options::kv_cache_bytes>(
        "kv-cache-bytes", "DEEPINFER_KV_CACHE_BYTES", 0, INT64_MAX,
        "Memory for the KV cache, the snapshots of prefix-caching deterministic included; 0 takes "
        "what memory-fraction leaves, at most what max-num-seqs full sequences need."),
    Real<&Options::memory_fraction>(
        "memory-fraction", "DEEPINFER_MEMORY_FRACTION", {.min = 0, .max = 1, .min_is_open = true},
        "Share of the memory available at the start that the engine may "
        "take beside the checkpoint."),
    Choice<&Options::prefix_caching, kPrefixCachings>(
        "prefix-caching", "DEEPINFER_PREFIX_CACHING", "MODE",
        "Prompts that begin alike share what was computed: fast from any block on, where the last "
        "bits of results may differ from those without a cache; deterministic from where the "
        "windows were kept, where they never do."),
    Choice<&Options::prefix_eviction, kPrefixEvictions>(
        "prefix-eviction", "DEEPINFER_PREFIX_EVICTION", "POLICY",
        "Which cached blocks give way: the least recently used, or first those that were asked for "
        "only once."),
    Integer<&Options::prefix_snapshot_interval>(
        "prefix-snapshot-interval", "DEEPINFER_PREFIX_SNAPSHOT_INTERVAL", 2, 1 << 24,
        "Tokens of a long prompt between the places where prefix-caching deterministic keeps the "
        "windows; a multiple of block-size."),
    Integer<&Options::async_scheduling>(
        "async-scheduling", "DEEPINFER_ASYNC_SCHEDULING", 0, 1,
        "1 plans the next step while one runs; 0 after it. Results do not depend on it."),
    Integer<&Options::use_nextn_decode>(
        "use-nextn-decode", "DEEPINFER_USE_NEXTN_DECODE", 0, 64,
        "Tokens that the checkpoint's draft module guesses ahead for each sequence in a step, and "
        "the model verifies; 0 disables it, the checkpoint's draft block is the most. Results do "
        "not depend on it; it pays while few sequences run."),
    Integer<&Options::grammar_cache_bytes>(
        "grammar-cache-bytes", "DEEPINFER_GRAMMAR_CACHE_BYTES", 0, INT64_MAX,
        "Memory for compiled grammars that no request uses at the moment."),
    Choice<&Options::logprobs_mode, kLogprobsModes>(
        "logprobs-mode", "DEEPINFER_LOGPROBS_MODE", "MODE",
        "Log-probabilities of the model's own logits (raw), or of what the draw saw after bias, "
        "masks, penalties, temperature and filters (processed)."),

    Integer<&Options::max_tokens>("max-tokens", "DEEPINFER_MAX_TOKENS", 1, 1 << 20,
                                  "Generated tokens after which an answer is cut off."),
    Real<&Options::temperature>("temperature", "DEEPINFER_TEMPERATURE", {.min = 0, .max = 100},
                                "Sampling temperature; 0 always takes the likeliest token."),
    Real<&Options::top_p>("top-p", "DEEPINFER_TOP_P", {.min = 0, .max = 1, .min_is_open = true},
                          "Samples from the smallest set of likeliest tokens whose probability "
                          "reaches this; 1 keeps all."),
    Integer<&Options::top_k>("top-k", "DEEPINFER_TOP_K", 0, 1 << 20,
                             "Samples from this many likeliest tokens; 0 keeps all."),
    Real<&Options::min_p>("min-p", "DEEPINFER_MIN_P", {.min = 0, .max = 1},
                          "Drops tokens less likely than this share of the likeliest one; 0 keeps "
                          "all."),
    Integer<&Options::seed>("seed", "DEEPINFER_SEED", 0, INT64_MAX,
                            "Seed of the random draws; the same request with the same seed gives "
                            "the same text."),
};

constexpr OtherVariable kOtherVariables[] = {
    {"DEEPINFER_CONFIG", "Config file, where the command line names none with `--config`."},
    {"DEEPINFER_ACCELERATOR",
     "Read by `build.sh`: the back end to build. This version has `cpu` alone."},
    {"DEEPINFER_REQUIRE_GOLDENS",
     "Read by the tests: with 1, golden data that is missing fails a test instead of skipping it."},
    {"DEEPINFER_IDENTITY_WORKLOADS",
     "Read by the engine's identity and drafting tests: workloads a mode, instead of 60 and 15."},
    {"DEEPINFER_V3_TOKENIZER",
     "Read by tests and benchmarks: path of DeepSeek-V3's `tokenizer.json`, where "
     "`tools/fetch_v3_tokenizer.sh` has not put one under `build/`."},
};

std::string DefaultText(const OptionSpec& spec) {
  const std::string text = spec.get(Options{});
  return text.empty() ? "none" : text;
}

}  // namespace

std::span<const OptionSpec> OptionTable() { return kTable; }

std::span<const OtherVariable> OtherVariables() { return kOtherVariables; }

const OptionSpec* FindOption(std::string_view name) {
  for (const OptionSpec& spec : kTable) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string AllowedValues(const OptionSpec& spec) {
  switch (spec.kind) {
    case OptionKind::kText:
      return "a non-empty text";
    case OptionKind::kInteger:
      return fmt::format("an integer from {} to {}", spec.integer_min, spec.integer_max);
    case OptionKind::kReal:
      return spec.min_is_open ? fmt::format("a number above {} and at most {}", spec.min, spec.max)
                              : fmt::format("a number from {} to {}", spec.min, spec.max);
    case OptionKind::kChoice:
      return fmt::format("one of {}", fmt::join(spec.choices, ", "));
  }
  return {};
}

std::string OptionHelp(const OptionSpec& spec) {
  const std::string allowed =
      spec.kind == OptionKind::kText ? "" : fmt::format("{}; ", AllowedValues(spec));
  return fmt::format("{} ({}default {}; {})", spec.help, allowed, DefaultText(spec),
                     spec.environment);
}

std::string OptionsMarkdown() {
  std::string text =
      "# Options\n\n"
      "Generated from the table in `src/config/option_table.cc` by `tools/update_option_docs.sh`.\n"
      "\n"
      "Each option is a command-line flag (`--threads 2`), an environment variable and a key of a "
      "JSON config file (`{\"threads\": 2}`, named by `--config FILE` or `DEEPINFER_CONFIG`). The "
      "command line goes before the environment, the environment before the config file, and that "
      "before the default. An empty variable counts as unset. A value that is not allowed ends "
      "the program with an error that names the option, where the value came from and what is "
      "allowed; an unknown key of the config file is an error, an unknown `DEEPINFER_` variable "
      "a warning. A command takes the options that mean something to it: "
      "`deepinfer COMMAND --help` lists them.\n\n"
      "| option | variable | value | default | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const OptionSpec& spec : kTable) {
    text += fmt::format("| `--{} {}` | `{}` | {} | {} | {} |\n", spec.name, spec.value_name,
                        spec.environment, AllowedValues(spec), DefaultText(spec), spec.help);
  }
  text += "\nOther variables:\n\n| variable | meaning |\n| --- | --- |\n";
  for (const OtherVariable& variable : kOtherVariables) {
    text += fmt::format("| `{}` | {} |\n", variable.name, variable.help);
  }
  return text;
}

}  // namespace deepinfer
