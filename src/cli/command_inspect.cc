// deepinfer inspect: what a checkpoint folder holds.
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "loader/checkpoint_report.h"

namespace deepinfer::cli {
namespace {

class InspectCommand final : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "Shows a checkpoint's architecture, layers, tensors and memory.";
  }
  std::string examples() const override {
    return "  deepinfer inspect models/nano\n"
           "  deepinfer inspect --tensors models/nano\n"
           "  deepinfer inspect --json models/nano > nano.json\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Positional("DIR", folder_,
                     "Checkpoint folder, or one with config.json alone (default: the model that "
                     "`generate` would take).");
    flags.Switch("json", json_, "Prints one JSON object, with all tensors.");
    flags.Switch("tensors", tensors_, "Lists every tensor.");
    flags.FromTable({"model"});
  }
  Status Validate(const ResolvedOptions& options) override {
    const auto source = options.sources.find("model");
    if (folder_ && source != options.sources.end() &&
        source->second == OptionSource::kCommandLine) {
      return MakeError(ErrorCode::kInvalidArgument, "give DIR or --model, not both");
    }
    return {};
  }

  Result<int> Run(const ResolvedOptions& options) override {
    std::filesystem::path folder;
    if (folder_) {
      folder = *folder_;
    } else {
      DI_ASSIGN_OR_RETURN(folder, ChooseModel(options, /*needs_weights=*/false));
    }
    DI_ASSIGN_OR_RETURN(const CheckpointReport report,
                        InspectCheckpoint(folder, TerminalProgress()));
    DI_RETURN_IF_ERROR(
        StandardOutput().Write(json_ ? ReportJson(report) : ReportText(report, tensors_)));
    return kExitOk;
  }

 private:
  std::optional<std::string> folder_;
  bool json_ = false;
  bool tensors_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() { return std::make_unique<InspectCommand>(); }

}  // namespace deepinfer::cli
