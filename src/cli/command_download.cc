// deepinfer download: a checkpoint from the hub into the local cache.
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "loader/download.h"

namespace deepinfer::cli {
namespace {

class DownloadCommand final : public Command {
 public:
  std::string name() const override { return "download"; }
  std::string summary() const override {
    return "Downloads a checkpoint into the Hugging Face cache.";
  }
  std::string examples() const override {
    return "  deepinfer download\n"
           "  deepinfer download deepseek-ai/DeepSeek-V4.1-Flash-1017 --revision main\n"
           "An interrupted download goes on where it stopped when the command is given again.\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Positional("REPO", repository_,
                     "Repository \"org/name\" (default " + std::string(kDefaultRepository) + ").");
    flags.Text("revision", revision_, "NAME", "Branch, tag or commit (default main).");
  }

  Result<int> Run(const ResolvedOptions&) override {
    DI_ASSIGN_OR_RETURN(DownloadOptions download,
                        DownloadOptionsFromEnvironment(ProcessEnvironment()));
    if (repository_) download.repository = *repository_;
    if (revision_) download.revision = *revision_;
    download.cancelled = &Interrupt();
    CatchInterrupt();
    DI_ASSIGN_OR_RETURN(const std::filesystem::path folder,
                        DownloadRepository(download, TerminalProgress()));
    DI_RETURN_IF_ERROR(StandardOutput().Write(folder.string() + "\n"));
    return kExitOk;
  }

 private:
  std::optional<std::string> repository_;
  std::optional<std::string> revision_;
};

}  // namespace

std::unique_ptr<Command> MakeDownloadCommand() { return std::make_unique<DownloadCommand>(); }

}  // namespace deepinfer::cli
