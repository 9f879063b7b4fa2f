// What the commands that run a model have in common.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "config/option_parser.h"
#include "engine/generator.h"
#include "engine/request.h"
#include "engine/runtime.h"

namespace deepinfer::cli {

// The checkpoint folder by the rules of loader/model_resolver.h; prints which rule chose it on
// standard error. needs_weights = false accepts a folder without weights.
Result<std::filesystem::path> ChooseModel(const ResolvedOptions& options,
                                          bool needs_weights = true);

// The chosen checkpoint's tokenizer alone.
Result<Tokenizer> LoadTokenizer(const ResolvedOptions& options);

// A loaded checkpoint and one generator on it.
class Session {
 public:
  static Result<std::unique_ptr<Session>> Open(const ResolvedOptions& options);

  const Runtime& runtime() const { return *runtime_; }
  Generator& generator() { return generator_; }

  // Adds up over generations for PrintStats.
  void Count(const Generation& generation);
  // Speed and memory on standard error.
  void PrintStats() const;

 private:
  Session(std::shared_ptr<const Runtime> runtime, const Options& options, double load_seconds);

  std::shared_ptr<const Runtime> runtime_;
  model::v41::ForwardContext context_;
  Generator generator_;
  GenerationStats stats_;
  uint64_t global_kv_bytes_ = 0;
  uint64_t fixed_cache_bytes_ = 0;
};

PrefillPolicy PrefillPolicyOf(const Options& options);

// WorkerPlacement with the calling thread, which is the program's own.
ThreadPoolOptions ProgramPlacement(const Options& options);

// --system, --thinking, --effort and --tools.
struct ChatFlags {
  std::optional<std::string> system;
  bool thinking = false;
  std::optional<std::string> effort;
  std::optional<std::string> tools_file;

  void Declare(FlagSet& flags);
  bool any() const { return system || thinking || effort || tools_file; }
  // Errors name an effort outside its range.
  Status Validate() const;
  // Reads the tools file. Call after Validate.
  Result<RequestDefaults> Defaults(const Options& options) const;
};

}  // namespace deepinfer::cli
