// deepinfer make-checkpoint: a checkpoint in the release's format with random weights.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/session.h"
#include "config/model_config.h"
#include "loader/checkpoint_design.h"
#include "loader/make_checkpoint.h"
#include "tokenizer/engram_token_map.h"

namespace deepinfer::cli {
namespace {

class MakeCheckpointCommand final : public Command {
 public:
  std::string name() const override { return "make-checkpoint"; }
  std::string summary() const override {
    return "Makes a checkpoint with random weights, for tests and measurements.";
  }
  std::string examples() const override {
    return "  deepinfer make-checkpoint --preset tiny --out /tmp/tiny\n"
           "  deepinfer make-checkpoint --preset release --layers 3 --out /tmp/release-3\n"
           "  deepinfer make-checkpoint --preset mid --set hidden_size=1024 --out /tmp/mid\n";
  }
  void Declare(FlagSet& flags) override {
    flags.Text("out", out_, "DIR", "The folder to make (required).");
    flags.Text("preset", preset_, "NAME",
               "Dimensions to start from: release, mid or tiny (default tiny).");
    flags.Text("config", base_config_, "FILE", "A config.json to start from instead of a preset.");
    flags.Integer("layers", layers_, 3, 256, "Number of layers, in the release's pattern.");
    flags.Integer("draft-stages", draft_stages_, 0, 16, "Number of draft stages.");
    flags.Text("set", settings_, "KEY=VALUE,...", "Other keys of text_config and their values.");
    flags.Integer("seed", seed_, 0, INT64_MAX, "Seed of the weights (default 0).");
    flags.Integer("shard-mib", shard_mib_, 1, 1 << 26,
                  "Largest weight file in MiB (default 4096).");
    flags.Text("tokenizer", tokenizer_, "FILE",
               "tokenizer.json to use (default: that of the chosen model).");
    flags.FromTable({"model", "threads"});
  }
  Status Validate(const ResolvedOptions&) override {
    static const std::string kNone;
    if (!out_) return MakeError(ErrorCode::kInvalidArgument, "--out DIR is missing");
    if (preset_ && base_config_) {
      return MakeError(ErrorCode::kInvalidArgument, "give --preset or --config, not both");
    }
    for (auto rest = std::string_view(settings_ ? *settings_ : kNone); !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      const std::string_view setting = rest.substr(0, end);
      const size_t equals = setting.find('=');
      if (equals == 0 || equals == std::string_view::npos) {
        return MakeError(ErrorCode::kInvalidArgument, "--set {} is not KEY=VALUE", setting);
      }
      design_.settings[std::string(setting.substr(0, equals))] = setting.substr(equals + 1);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (preset_) design_.preset = *preset_;
    if (layers_) design_.layers = static_cast<int>(*layers_);
    if (draft_stages_) design_.draft_stages = static_cast<int>(*draft_stages_);
    return {};
  }

  Result<int> Run(const ResolvedOptions& options) override {
    if (base_config_) {
      DI_ASSIGN_OR_RETURN(design_.base_config, ReadFile(*base_config_));
    }
    MakeCheckpointOptions make;
    make.folder = *out_;
    DI_ASSIGN_OR_RETURN(make.config_json, DesignConfig(design_));
    DI_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(make.config_json));
    DI_ASSIGN_OR_RETURN(const std::filesystem::path tokenizer_file, TokenizerFile(options));
    DI_ASSIGN_OR_RETURN(const std::string tokenizer_json, ReadFile(tokenizer_file));
    DI_ASSIGN_OR_RETURN(make.tokenizer_json, PadTokenizer(tokenizer_json, config.vocab_size));
    DI_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::FromJson(make.tokenizer_json));
    DI_ASSIGN_OR_RETURN(const std::vector<int32_t> map,
                        BuildEngramTokenMap(tokenizer, config.vocab_size, std::nullopt));
    make.engram_compressed_vocab_size = int64_t{*std::ranges::max_element(map)} + 1;
    make.seed = static_cast<uint64_t>(seed_.value_or(0));
    if (shard_mib_) make.shard_bytes = static_cast<uint64_t>(*shard_mib_) << 20;
    make.threads = ThreadCount(options.values.threads);
    // Either signal still removes the unfinished folder.
    make.cancelled = &Interrupt();
    CatchInterrupt({SIGINT, SIGTERM});
    DI_RETURN_IF_ERROR(MakeCheckpoint(make, TerminalProgress()));
    DI_RETURN_IF_ERROR(StandardOutput().Write(*out_ + "\n"));
    return kExitOk;
  }

 private:
  Result<std::filesystem::path> TokenizerFile(const ResolvedOptions& options) const {
    if (tokenizer_) return *tokenizer_;
    DI_ASSIGN_OR_RETURN(const std::filesystem::path folder,
                        ChooseModel(options, /*needs_weights=*/false));
    return folder / "tokenizer.json";
  }

  CheckpointDesign design_;
  std::optional<std::string> out_;
  std::optional<std::string> preset_;
  std::optional<std::string> base_config_;
  std::optional<int64_t> layers_;
  std::optional<int64_t> draft_stages_;
  std::optional<std::string> settings_;
  std::optional<int64_t> seed_;
  std::optional<int64_t> shard_mib_;
  std::optional<std::string> tokenizer_;
};

}  // namespace

std::unique_ptr<Command> MakeMakeCheckpointCommand() {
  return std::make_unique<MakeCheckpointCommand>();
}

}  // namespace deepinfer::cli
