// deepinfer verify: this engine's blocks against a dump of captured tensors.
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engine/verify.h"

namespace deepinfer::cli {
namespace {

class VerifyCommand final : public Command {
 public:
  std::string name() const override { return "verify"; }
  std::string summary() const override {
    return "Compares every block with a dump of captured tensors and shows the first divergence.";
  }
  std::string examples() const override {
    return "  deepinfer verify toy-a/checkpoint --against toy-a/capture_p33_idx32.safetensors\n"
           "  deepinfer verify toy-a/checkpoint --against toy-a --prompt p130\n"
           "  deepinfer verify toy-a/checkpoint --against toy-a --prompt p33 --free --all\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Positional("DIR", folder_, "Checkpoint folder.");
    flags.Text("against", dump_, "DUMP",
               "Safetensors file of captured tensors, with their prompt in a tensor \"tokens\" or "
               "in prompts.safetensors beside it; or a folder of such files.");
    flags.Text("prompt", prompt_, "NAME", "Which prompt of the folder, such as p33.");
    flags.Switch("free", free_running_,
                 "Runs freely instead of starting every block from the dump's inputs.");
    flags.Switch("all", all_, "Lists every tensor, not only those that differ.");
    flags.FromTable({"threads", "cpu-pinning", "cpu-target"});
  }
  Status Validate(const ResolvedOptions&) override {
    if (!folder_) return MakeError(ErrorCode::kInvalidArgument, "give the checkpoint folder DIR");
    if (!dump_) return MakeError(ErrorCode::kInvalidArgument, "give --against DUMP");
    return {};
  }

  Result<int> Run(const ResolvedOptions& options) override {
    DI_ASSIGN_OR_RETURN(const VerifyDump dump, FindVerifyDump(*dump_, prompt_.value_or("")));
    DI_ASSIGN_OR_RETURN(
        const auto runtime,
        Runtime::Load(*folder_, RuntimeOptionsOf(options.values), TerminalProgress()));
    model::v41::ForwardContext context(ThreadCount(options.values.threads),
                                       ProgramPlacement(options.values));
    DI_RETURN_IF_ERROR(context.pool().status());
    DI_ASSIGN_OR_RETURN(const VerifyReport report,
                        Verify(runtime->model(), context, dump, free_running_));
    DI_RETURN_IF_ERROR(Print(dump, report));
    return report.first_divergence() == nullptr ? kExitOk : kExitFailure;
  }

 private:
  Status Print(const VerifyDump& dump, const VerifyReport& report) {
    Output& output = StandardOutput();
    DI_RETURN_IF_ERROR(
        output.Write(fmt::format("{}: {} tokens, {}\n", dump.file.string(), dump.tokens.size(),
                                 free_running_ ? "free-running" : "teacher-forced")));
    DI_RETURN_IF_ERROR(output.Write(fmt::format("{:<28} {:>10} {:>9} {:>10} {:>10}\n", "tensor",
                                                "elements", "differing", "max abs", "rms rel")));
    size_t agreeing = 0;
    for (const TensorComparison& t : report.tensors) {
      agreeing += t.agrees;
      if (t.agrees && t.differing == 0 && !all_) continue;
      DI_RETURN_IF_ERROR(output.Write(fmt::format(
          "{:<28} {:>10} {:>9} {:>10.3g} {:>10.3g}{}\n", t.name, t.elements, t.differing, t.max_abs,
          t.rms_relative, t.agrees ? "" : "  DIVERGES: " + t.problem)));
    }
    for (const std::string& name : report.unused) {
      if (all_) DI_RETURN_IF_ERROR(output.Write(fmt::format("{:<28} not compared\n", name)));
    }
    DI_RETURN_IF_ERROR(
        output.Write(fmt::format("{} of {} tensors agree, {} of the dump not compared\n", agreeing,
                                 report.tensors.size(), report.unused.size())));
    const TensorComparison* first = report.first_divergence();
    return output.Write(
        first == nullptr ? "no divergence\n"
                         : fmt::format("first divergence: {}: {}\n", first->name, first->problem));
  }

  std::optional<std::string> folder_;
  std::optional<std::string> dump_;
  std::optional<std::string> prompt_;
  bool free_running_ = false;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeVerifyCommand() { return std::make_unique<VerifyCommand>(); }

}  // namespace deepinfer::cli
