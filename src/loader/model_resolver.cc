#include "loader/model_resolver.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

#include "base/file.h"
#include "config/model_config.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelVariable = "DEEPINFER_HF_MODEL_DIR";
constexpr size_t kMaxIndexBytes = size_t{256} << 20;
constexpr size_t kMaxReferenceBytes = 4096;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);  // false for a dangling link
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

Result<std::set<std::string>> ShardNames(const fs::path& index) {
  DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(index, kMaxIndexBytes));
  const auto root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object()) {
    return MakeError(ErrorCode::kDataLoss, "{} has no object \"weight_map\"", index.string());
  }
  std::set<std::string> names;
  for (const auto& [tensor, shard] : root["weight_map"].items()) {
    if (!shard.is_string()) {
      return MakeError(ErrorCode::kDataLoss, "{}: the shard of \"{}\" is not a string",
                       index.string(), tensor);
    }
    names.insert(shard.get<std::string>());
  }
  return names;
}

// A checkpoint that this engine does not run may well lack files that it would need. What else is
// wrong with config.json is for the loader to say.
Status CheckArchitecture(const fs::path& folder) {
  const auto text = ReadFile(folder / "config.json");
  if (!text) return {};
  auto config = ParseModelConfig(*text);
  if (config || config.error().code != ErrorCode::kUnsupported) return {};
  return Forward(std::move(config).error(), folder.string());
}

Status CheckWeights(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  if (!Exists(index)) {
    if (Exists(folder / "model.safetensors")) return {};
    return MakeError(ErrorCode::kNotFound,
                     "{} holds neither model.safetensors nor model.safetensors.index.json",
                     folder.string());
  }
  DI_ASSIGN_OR_RETURN(const std::set<std::string> shards, ShardNames(index));
  size_t missing = 0;
  std::string first;
  for (const std::string& shard : shards) {
    if (Exists(folder / shard)) continue;
    if (missing++ == 0) first = shard;
  }
  if (missing == 0) return {};
  return MakeError(ErrorCode::kNotFound,
                   "{} is incomplete: {} of {} weight files are missing, first {}", folder.string(),
                   missing, shards.size(), first);
}

// The snapshot that refs/main of a repository folder (models--ORG--NAME) names.
Result<fs::path> SnapshotFolder(const fs::path& repository) {
  const fs::path reference = repository / "refs" / "main";
  if (!Exists(reference)) {
    return MakeError(ErrorCode::kNotFound,
                     "{} is incomplete: it has no refs/main, so its download did not finish",
                     repository.string());
  }
  DI_ASSIGN_OR_RETURN(std::string commit, ReadFile(reference, kMaxReferenceBytes));
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  if (commit.empty() || commit.find('/') != std::string::npos || commit.front() == '.') {
    return MakeError(ErrorCode::kDataLoss, "{} does not name a snapshot: \"{}\"",
                     reference.string(), commit);
  }
  const fs::path snapshot = repository / "snapshots" / commit;
  if (!IsFolder(snapshot)) {
    return MakeError(ErrorCode::kNotFound, "{} is incomplete: snapshot {} is missing",
                     repository.string(), commit);
  }
  return snapshot;
}

// A folder the user named: a checkpoint, or a whole repository of the cache.
Result<fs::path> UserFolder(const fs::path& path, bool needs_weights) {
  fs::path folder = path;
  if (IsFolder(path / "snapshots") && !Exists(path / "config.json")) {
    DI_ASSIGN_OR_RETURN(folder, SnapshotFolder(path));
  }
  DI_RETURN_IF_ERROR(CheckCheckpointFolder(folder, needs_weights));
  return folder;
}

Result<ResolvedModel> FromCache(const ModelQuery& query, const std::string& id,
                                std::string reason) {
  DI_ASSIGN_OR_RETURN(const fs::path hub, HubCacheFolder(query.environment));
  const fs::path repository = HubRepository{hub, id}.folder();
  if (!IsFolder(repository)) {
    return MakeError(ErrorCode::kNotFound, "{} is not in the Hugging Face cache {}", id,
                     hub.string());
  }
  DI_ASSIGN_OR_RETURN(const fs::path snapshot, SnapshotFolder(repository));
  DI_RETURN_IF_ERROR(CheckCheckpointFolder(snapshot, query.needs_weights));
  return ResolvedModel{snapshot, std::move(reason)};
}

Result<ResolvedModel> FromArgument(const ModelQuery& query) {
  const fs::path path = query.model;
  if (Exists(path)) {
    auto folder = UserFolder(path, query.needs_weights);
    if (!folder) return Forward(std::move(folder).error(), "--model");
    return ResolvedModel{*folder,
                         fmt::format("{} is the folder given with --model", folder->string())};
  }
  if (IsRepositoryId(query.model)) {
    auto cached =
        FromCache(query, query.model,
                  fmt::format("--model {} was found in the Hugging Face cache", query.model));
    if (cached) return cached;
    return Forward(std::move(cached).error(),
                   fmt::format("--model: no folder {}, and as a repository", query.model));
  }
  return MakeError(ErrorCode::kNotFound,
                   "--model: {} is neither an existing folder nor a repository id (org/name)",
                   query.model);
}

std::optional<fs::path> ShippedFolder(const ModelQuery& query) {
  const fs::path nano = fs::path("models") / "nano";
  std::vector<fs::path> candidates;
  fs::path parent = query.executable_folder;
  // Five levels reach the source tree from any build folder in use.
  for (int level = 0; level < 5 && !parent.empty(); ++level) {
    candidates.push_back(parent / nano);
    candidates.push_back(parent / "share" / "deepinfer" / nano);
    if (parent == parent.parent_path()) break;
    parent = parent.parent_path();
  }
  candidates.push_back(query.current_folder / nano);
  for (const fs::path& candidate : candidates) {
    if (Exists(candidate / "config.json")) return candidate.lexically_normal();
  }
  return std::nullopt;
}

}  // namespace

Status CheckCheckpointFolder(const fs::path& folder, bool needs_weights) {
  if (!Exists(folder)) return MakeError(ErrorCode::kNotFound, "{} does not exist", folder.string());
  if (!IsFolder(folder)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} is a file; a checkpoint is a folder with config.json and weight files",
                     folder.string());
  }
  if (!Exists(folder / "config.json")) {
    return MakeError(ErrorCode::kNotFound, "{} is not a checkpoint: it has no config.json",
                     folder.string());
  }
  if (!needs_weights) return {};
  DI_RETURN_IF_ERROR(CheckArchitecture(folder));
  DI_RETURN_IF_ERROR(CheckWeights(folder));
  if (!Exists(folder / "tokenizer.json")) {
    return MakeError(ErrorCode::kNotFound, "{} is incomplete: it has no tokenizer.json",
                     folder.string());
  }
  return {};
}

Result<ResolvedModel> ResolveModel(const ModelQuery& query) {
  if (!query.model.empty()) return FromArgument(query);

  if (const auto folder = NonEmptyVariable(query.environment, kModelVariable)) {
    auto checked = UserFolder(*folder, query.needs_weights);
    if (!checked) return Forward(std::move(checked).error(), std::string(kModelVariable));
    return ResolvedModel{
        *checked, fmt::format("{} is the folder that {} names", checked->string(), kModelVariable)};
  }

  const std::string id(kDefaultRepository);
  const auto hub = HubCacheFolder(query.environment);
  if (hub && IsFolder(HubRepository{*hub, id}.folder())) {
    auto cached = FromCache(query, id, fmt::format("{} was found in the Hugging Face cache", id));
    if (cached) return cached;
    Error error = std::move(cached).error();
    error.message += "; finish the download, or name another checkpoint with --model";
    return Forward(std::move(error));
  }

  if (const auto nano = ShippedFolder(query)) {
    DI_RETURN_IF_ERROR(CheckCheckpointFolder(*nano, query.needs_weights));
    return ResolvedModel{
        *nano, fmt::format("{} is the checkpoint shipped with DeepInfer (no --model, no {}, and "
                           "{} is not in the Hugging Face cache)",
                           nano->string(), kModelVariable, id)};
  }
  return MakeError(ErrorCode::kNotFound,
                   "no checkpoint: give --model, set {}, download {}, or run beside models/nano "
                   "(looked upwards from {} and in {})",
                   kModelVariable, id, query.executable_folder.string(),
                   query.current_folder.string());
}

}  // namespace deepinfer
