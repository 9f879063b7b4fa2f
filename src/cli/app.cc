#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <new>
#include <sstream>

#include "cli/command.h"
#include "cli/output.h"

namespace deepinfer::cli {
namespace {

struct Entry {
  std::unique_ptr<Command> command;
  std::unique_ptr<FlagSet> flags;
  CLI::App* app = nullptr;
};

std::vector<Entry> DeclareCommands(CLI::App& program) {
  std::vector<Entry> entries;
  for (auto make : {MakeGenerateCommand, MakeChatCommand, MakeInspectCommand, MakeTokenizeCommand,
                    MakeEncodeCommand, MakeMakeCheckpointCommand, MakeDownloadCommand,
                    MakeEvalCommand, MakeVerifyCommand, MakeBenchCommand, MakeGrammarCommand}) {
    Entry entry;
    entry.command = make();
    entry.app = program.add_subcommand(entry.command->name(), entry.command->summary());
    entry.app->footer("\nExamples:\n" + entry.command->examples());
    entry.flags = std::make_unique<FlagSet>(*entry.app);
    entry.command->Declare(*entry.flags);
    entry.flags->FromTable({"log-level"});
    entry.flags->ConfigFile();
    entries.push_back(std::move(entry));
  }
  return entries;
}

void SetUpLogging(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err,
                                                   spdlog::level::off};
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_st>()));
  spdlog::set_pattern("deepinfer: %l: %v");
  spdlog::set_level(kLevels[static_cast<size_t>(level)]);
}

// The exit code of an error that ended a command.
int Report(const Error& error, int exit_code) {
  if (StandardOutput().closed_by_reader()) return kExitOk;
  PrintNote("deepinfer: error: " + error.message);
  return exit_code;
}

int RunCommand(Entry& entry) {
  std::optional<std::filesystem::path> config_file;
  if (entry.flags->config_file()) config_file = *entry.flags->config_file();
  auto options = ResolveOptions(entry.flags->TableValues(), ReadEnvironment(), config_file);
  if (!options) return Report(options.error(), kExitUsage);
  SetUpLogging(options->values.log_level);
  for (const std::string& warning : options->warnings) spdlog::warn("{}", warning);
  if (Status valid = entry.command->Validate(*options); !valid) {
    return Report(valid.error(), kExitUsage);
  }
  const Result<int> code = entry.command->Run(*options);
  // What was written before an error still reaches the reader.
  const Status flushed = StandardOutput().Flush();
  if (!code) return Report(code.error(), kExitFailure);
  if (!flushed) return Report(flushed.error(), kExitFailure);
  return *code;
}

// Help and version go to standard output, complaints to standard error.
int FinishParse(const CLI::App& program, const CLI::ParseError& outcome) {
  std::ostringstream text;
  std::ostringstream complaint;
  const int code = program.exit(outcome, text, complaint);
  if (code != 0) {
    std::string message = complaint.str();
    while (!message.empty() && message.back() == '\n') message.pop_back();
    PrintNote("deepinfer: error: " + message);
    return kExitUsage;
  }
  Output& output = StandardOutput();
  Status written = output.Write(text.str());
  if (written) written = output.Flush();
  return written ? kExitOk : Report(written.error(), kExitFailure);
}

// An error that names a command the program does not have; the parser would only miss one.
Status CheckCommandName(const std::vector<Entry>& entries, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.command->name());
  if (std::ranges::find(names, argv[1]) != names.end()) return {};
  return MakeError(ErrorCode::kInvalidArgument, "no command {}; there are {}", argv[1],
                   fmt::join(names, ", "));
}

}  // namespace

int RunProgram(int argc, char** argv) {
  // A closed output pipe then shows as an error of write.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App program("Runs checkpoints of the DeepSeek-V4.1 architecture.", "deepinfer");
  program.set_version_flag("--version", "deepinfer " DEEPINFER_VERSION);
  program.require_subcommand(1);
  try {
    std::vector<Entry> entries = DeclareCommands(program);
    if (const Status known = CheckCommandName(entries, argc, argv); !known) {
      return Report(known.error(), kExitUsage);
    }
    try {
      program.parse(argc, argv);
    } catch (const CLI::ParseError& outcome) {
      return FinishParse(program, outcome);
    }
    for (Entry& entry : entries) {
      if (entry.app->parsed()) return RunCommand(entry);
    }
  } catch (const std::bad_alloc&) {
    PrintNote("deepinfer: error: out of memory");
  } catch (const std::exception& e) {
    PrintNote(fmt::format("deepinfer: error: {}", e.what()));
  }
  return kExitFailure;
}

}  // namespace deepinfer::cli
