// What the commands that run a model have in common.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "config/option_parser.h"
#include "engine/completion.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "engine/runtime.h"

namespace deepinfer::cli {

// Flags of the options that every command with an engine takes.
void DeclareEngineFlags(FlagSet& flags);

// The checkpoint folder by the rules of loader/model_resolver.h; prints which rule chose it on
// standard error. needs_weights = false accepts a folder without weights.
Result<std::filesystem::path> ChooseModel(const ResolvedOptions& options,
                                          bool needs_weights = true);

// The chosen checkpoint's tokenizer alone.
Result<Tokenizer> LoadTokenizer(const ResolvedOptions& options);

// A loaded checkpoint and an engine on it.
class Session {
 public:
  static Result<std::unique_ptr<Session>> Open(const ResolvedOptions& options);

  const Runtime& runtime() const { return engine_->runtime(); }
  Engine& engine() { return *engine_; }

  // Adds up over completions for PrintStats.
  void Count(const Completion& completion);
  // Speed and memory on standard error.
  void PrintStats() const;

 private:
  Session(std::unique_ptr<Engine> engine, double load_seconds);

  std::unique_ptr<Engine> engine_;
  std::chrono::steady_clock::time_point start_;
  GenerationStats stats_;
  int64_t completions_ = 0;
};

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
