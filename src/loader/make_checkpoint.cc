#include "loader/make_checkpoint.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "config/model_config.h"
#include "loader/checkpoint_design.h"
#include "loader/checkpoint_writer.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Status CheckOptions(const MakeCheckpointOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    return MakeError(ErrorCode::kInvalidArgument, "threads is {}, allowed are 1 to 1024",
                     options.threads);
  }
  if (options.shard_bytes < (uint64_t{1} << 20) || options.shard_bytes > (uint64_t{1} << 46)) {
    return MakeError(ErrorCode::kInvalidArgument, "shard_bytes is {}, allowed are 2^20 to 2^46",
                     options.shard_bytes);
  }
  return {};
}

// The target without a trailing slash, absolute.
Result<fs::path> CheckTarget(const fs::path& folder) {
  std::error_code error;
  fs::path target = fs::absolute(folder, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (folder.empty() || error || !target.has_filename()) {
    return MakeError(ErrorCode::kInvalidArgument, "\"{}\" cannot become a checkpoint folder",
                     folder.string());
  }
  if (!fs::is_directory(target.parent_path(), error)) {
    return MakeError(ErrorCode::kNotFound, "the folder {} does not exist",
                     target.parent_path().string());
  }
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) return target;
  if (fs::is_directory(status) && fs::is_empty(target, error) && !error) return target;
  return MakeError(ErrorCode::kInvalidArgument,
                   "{} exists and is not an empty folder; nothing is overwritten", target.string());
}

Status CheckFreeSpace(const fs::path& folder, uint64_t needed) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) return {};
  const uint64_t free = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (needed <= free) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   "the checkpoint needs {} bytes, but {} has only {} bytes free", needed,
                   folder.string(), free);
}

// Removes the folder unless it was renamed away.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Create(const fs::path& target) {
    std::string name = target.string() + ".incomplete-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      return MakeError(ErrorCode::kIo, "cannot create a folder beside {}: {}", target.string(),
                       std::strerror(errno));
    }
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  Status MoveTo(const fs::path& target) {
    std::error_code error;
    fs::permissions(path_, fs::perms(0755), error);
    fs::rename(path_, target, error);
    if (error) {
      return MakeError(ErrorCode::kIo, "cannot rename {} to {}: {}", path_.string(),
                       target.string(), error.message());
    }
    path_.clear();
    return {};
  }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// Content of the added token with this id, or empty.
std::string TokenText(const Json& tokenizer, int32_t id) {
  if (!tokenizer.contains("added_tokens") || !tokenizer["added_tokens"].is_array()) return {};
  for (const Json& token : tokenizer["added_tokens"]) {
    if (token.is_object() && token.value("id", -1) == id) return token.value("content", "");
  }
  return {};
}

Status WriteTextFiles(const fs::path& folder, const ModelConfig& config,
                      const std::string& config_json, const std::string& tokenizer_json) {
  const Json tokenizer = Json::parse(tokenizer_json, nullptr, false);
  Json tokenizer_config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"add_bos_token", false},
                           {"add_eos_token", false},
                           {"clean_up_tokenization_spaces", false},
                           {"model_max_length", config.max_position_embeddings}};
  for (const auto& [key, id] :
       {std::pair("bos_token", config.bos_token), std::pair("eos_token", config.eos_token),
        std::pair("pad_token", config.pad_token)}) {
    const std::string text = TokenText(tokenizer, id);
    if (!text.empty()) tokenizer_config[key] = text;
  }
  const Json generation = {{"bos_token_id", config.bos_token},
                           {"eos_token_id", config.eos_token},
                           {"pad_token_id", config.pad_token},
                           {"do_sample", true},
                           {"temperature", 1.0},
                           {"top_p", 0.95}};
  DI_RETURN_IF_ERROR(WriteFileAtomically(folder / "config.json", config_json));
  DI_RETURN_IF_ERROR(WriteFileAtomically(folder / "tokenizer.json", tokenizer_json));
  DI_RETURN_IF_ERROR(
      WriteFileAtomically(folder / "tokenizer_config.json", tokenizer_config.dump(1) + "\n"));
  return WriteFileAtomically(folder / "generation_config.json", generation.dump(1) + "\n");
}

}  // namespace

Status MakeCheckpoint(const MakeCheckpointOptions& options, const ProgressFn& progress) {
  DI_RETURN_IF_ERROR(CheckOptions(options));
  DI_ASSIGN_OR_RETURN(const fs::path target, CheckTarget(options.folder));
  DI_ASSIGN_OR_RETURN(const std::string config_json,
                      FitConfigToTokenizer(options.config_json, options.tokenizer_json,
                                           options.engram_compressed_vocab_size));
  DI_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(config_json));
  if (config.has_vision) {
    return MakeError(ErrorCode::kUnsupported,
                     "config.json has a vision_config; checkpoints are made without vision tower");
  }

  const std::vector<ExpectedTensor> tensors = ExpectedTensors(config);
  const std::vector<ShardPlan> shards = PlanShards(tensors, options.shard_bytes);
  uint64_t total = 0;
  for (const ExpectedTensor& tensor : tensors) total += TensorBytes(tensor);
  DI_RETURN_IF_ERROR(CheckFreeSpace(target.parent_path(), total));

  DI_ASSIGN_OR_RETURN(TemporaryFolder temporary, TemporaryFolder::Create(target));
  DI_RETURN_IF_ERROR(WriteTextFiles(temporary.path(), config, config_json, options.tokenizer_json));
  ThreadPool pool(options.threads);
  uint64_t done = 0;
  for (const ShardPlan& shard : shards) {
    DI_RETURN_IF_ERROR(WriteRandomShard(
        temporary.path() / shard.file_name, std::span(tensors).subspan(shard.first, shard.count),
        options.seed, pool, options.cancelled, done, total, progress));
  }
  if (shards.size() > 1) {
    DI_RETURN_IF_ERROR(WriteFileAtomically(temporary.path() / "model.safetensors.index.json",
                                           ShardIndex(tensors, shards)));
  }
  return temporary.MoveTo(target);
}

}  // namespace deepinfer
