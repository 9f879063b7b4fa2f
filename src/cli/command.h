// One sub-command of the program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "config/option_parser.h"

namespace deepinfer::cli {

// Exit codes of the program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // the work failed, wholly or in part
inline constexpr int kExitUsage = 2;    // the command line asks for something that cannot be

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  // One sentence for the list of commands.
  virtual std::string summary() const = 0;
  // Lines for the end of "--help", each a complete command.
  virtual std::string examples() const = 0;
  virtual void Declare(FlagSet& flags) = 0;
  // Looks at the flags alone, before any work; an error is a usage error.
  virtual Status Validate(const ResolvedOptions&) { return {}; }
  // Returns the exit code; an error is printed and becomes kExitFailure.
  virtual Result<int> Run(const ResolvedOptions& options) = 0;
};

std::unique_ptr<Command> MakeGenerateCommand();
std::unique_ptr<Command> MakeChatCommand();
std::unique_ptr<Command> MakeInspectCommand();
std::unique_ptr<Command> MakeTokenizeCommand();
std::unique_ptr<Command> MakeEncodeCommand();
std::unique_ptr<Command> MakeMakeCheckpointCommand();
std::unique_ptr<Command> MakeDownloadCommand();
std::unique_ptr<Command> MakeEvalCommand();
std::unique_ptr<Command> MakeVerifyCommand();
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeGrammarCommand();

// Parses the command line, runs one command and returns the exit code. Never throws.
int RunProgram(int argc, char** argv);

}  // namespace deepinfer::cli
