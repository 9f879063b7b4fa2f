#include "loader/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/topology.h"
#include "config/strict_json.h"
#include "loader/safetensors.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr size_t kMaxIndexBytes = size_t{256} << 20;
constexpr size_t kMaxListed = 50;

// Tensor name -> shard file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

Status CheckFolder(const fs::path& dir) {
  std::error_code ignored;
  const fs::file_status status = fs::status(dir, ignored);
  if (!fs::exists(status)) {
    return MakeError(ErrorCode::kNotFound,
                     "no checkpoint folder {}; give a folder that holds {} and safetensors weights",
                     dir.string(), kConfigFile);
  }
  if (!fs::is_directory(status)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} is a file; give the folder that holds {} and the safetensors weights",
                     dir.string(), kConfigFile);
  }
  if (!fs::exists(dir / kConfigFile, ignored)) {
    return MakeError(ErrorCode::kNotFound,
                     "{} holds no {}; give the folder of a DeepSeek-V4.1 checkpoint", dir.string(),
                     kConfigFile);
  }
  return {};
}

// Shards lie beside the index; anything else could reach outside the checkpoint.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) {
           return c == '/' || c == '\\' || c < 0x20 || c == 0x7f;
         });
}

Result<WeightMap> ReadIndex(const fs::path& path) {
  DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxIndexBytes));
  DI_ASSIGN_OR_RETURN(const json index, ParseStrictJson(text, path.string()));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty()) {
    return MakeError(ErrorCode::kDataLoss,
                     "{}: weight_map must be a non-empty object of tensor names and file names",
                     path.string());
  }
  WeightMap shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return MakeError(ErrorCode::kDataLoss,
                       "{}: weight_map puts {} into {}; it must be the name of a file beside the "
                       "index",
                       path.string(), ShownJson(json(tensor)), ShownJson(shard));
    }
    shards.emplace(tensor, shard.get<std::string>());
  }
  return shards;
}

// The first names of a list for a message.
std::string Listed(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMaxListed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (shown < names.size()) text += fmt::format(" ... and {} more", names.size() - shown);
  return text;
}

Status CheckShardsExist(const fs::path& dir, const std::set<std::string>& shards) {
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    std::error_code ignored;
    if (!fs::exists(dir / shard, ignored)) missing.push_back(shard);
  }
  if (missing.empty()) return {};
  return MakeError(ErrorCode::kNotFound,
                   "{} lacks {} of the {} weight files that {} names: {}; complete the download or "
                   "copy them there",
                   dir.string(), missing.size(), shards.size(), kIndexFile, Listed(missing));
}

// `tensors` must be sorted by name and unique.
Status CheckIndexAgrees(const WeightMap& index, std::span<const StoredTensor> tensors) {
  std::vector<std::string> problems;
  auto tensor = tensors.begin();
  auto entry = index.begin();
  while (tensor != tensors.end() || entry != index.end()) {
    if (entry == index.end() || (tensor != tensors.end() && tensor->name < entry->first)) {
      problems.push_back(
          fmt::format("{} is in {} but not in the index", tensor->name, tensor->shard));
      ++tensor;
    } else if (tensor == tensors.end() || entry->first < tensor->name) {
      problems.push_back(fmt::format("the index puts {} into {}, which lacks it",
                                     ShownJson(json(entry->first)), entry->second));
      ++entry;
    } else {
      if (entry->second != tensor->shard) {
        problems.push_back(fmt::format("the index puts {} into {}, but it is in {}", entry->first,
                                       entry->second, tensor->shard));
      }
      ++tensor;
      ++entry;
    }
  }
  if (problems.empty()) return {};
  return MakeError(ErrorCode::kDataLoss, "{} disagrees with the weight files: {}", kIndexFile,
                   Listed(problems));
}

}  // namespace

Result<MappedFile> Checkpoint::LoadShard(const std::string& file_name, uint64_t done,
                                         uint64_t total, const ProgressFn& progress) const {
  return MappedFile::Load(dir_ / file_name, DefaultThreads(), [&](uint64_t bytes) {
    if (progress) progress("loading weights", done + bytes, total);
  });
}

Status Checkpoint::AddShard(const std::string& file_name, MappedFile file) {
  DI_ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                      ParseSafetensors(file.bytes(), file.path().string()));
  for (SafetensorsEntry& entry : entries) {
    const std::span<const std::byte> range =
        file.bytes().subspan(entry.begin, entry.end - entry.begin);
    if (IsEngramTable(entry.name)) file.AdviseRandomAccess(range);
    total_bytes_ += range.size();
    const TensorView view{entry.dtype, std::move(entry.shape), range.data()};
    tensors_.push_back({std::move(entry.name), view, file_name});
  }
  shards_.push_back(std::move(file));
  return {};
}

Status Checkpoint::OpenShards(WeightsMemory memory, const ProgressFn& progress) {
  std::error_code ignored;
  const bool has_index = fs::exists(dir_ / kIndexFile, ignored);
  std::set<std::string> files;
  WeightMap index;
  if (has_index) {
    DI_ASSIGN_OR_RETURN(index, ReadIndex(dir_ / kIndexFile));
    for (const auto& [tensor, shard] : index) files.insert(shard);
    DI_RETURN_IF_ERROR(CheckShardsExist(dir_, files));
  } else if (fs::exists(dir_ / kSingleFile, ignored)) {
    files.emplace(kSingleFile);
  } else {
    return MakeError(ErrorCode::kNotFound,
                     "{} holds neither {} nor {}; give the folder of a complete checkpoint",
                     dir_.string(), kSingleFile, kIndexFile);
  }
  const bool load = memory == WeightsMemory::kLoad;
  uint64_t done = 0, total = files.size();
  if (load) {
    total = 0;
    for (const std::string& file : files) {
      const auto bytes = fs::file_size(dir_ / file, ignored);
      if (!ignored) total += bytes;
    }
  }
  for (const std::string& name : files) {
    if (load) {
      DI_ASSIGN_OR_RETURN(MappedFile file, LoadShard(name, done, total, progress));
      done += file.bytes().size();
      DI_RETURN_IF_ERROR(AddShard(name, std::move(file)));
    } else {
      if (progress) progress("opening weights", done, total);
      DI_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(dir_ / name));
      DI_RETURN_IF_ERROR(AddShard(name, std::move(file)));
      ++done;
    }
  }
  if (progress && !load) progress("opening weights", done, total);

  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  const auto twin = std::adjacent_find(
      tensors_.begin(), tensors_.end(),
      [](const StoredTensor& a, const StoredTensor& b) { return a.name == b.name; });
  if (twin != tensors_.end()) {
    return MakeError(ErrorCode::kDataLoss, "tensor {} is in both {} and {}", twin->name,
                     twin->shard, std::next(twin)->shard);
  }
  return has_index ? CheckIndexAgrees(index, tensors_) : Status{};
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const fs::path& dir,
                                                     const CheckpointOptions& options,
                                                     const ProgressFn& progress) {
  DI_RETURN_IF_ERROR(CheckFolder(dir));
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint);
  checkpoint->dir_ = dir;
  DI_ASSIGN_OR_RETURN(const std::string config, ReadFile(dir / kConfigFile, kMaxConfigBytes));
  auto parsed = ParseModelConfig(config);
  if (!parsed) return Forward(std::move(parsed).error(), dir.string());
  checkpoint->config_ = std::move(*parsed);
  DI_RETURN_IF_ERROR(checkpoint->OpenShards(options.weights_memory, progress));
  auto summary = CheckTensorContract(checkpoint->config_, checkpoint->tensors_);
  if (!summary) return Forward(std::move(summary).error(), dir.string());
  checkpoint->num_ignored_ = summary->ignored;
  auto checked = CheckWeightValues(checkpoint->tensors_, options.weight_check, progress);
  if (!checked) return Forward(std::move(checked).error(), dir.string());
  return checkpoint;
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &found->view : nullptr;
}

}  // namespace deepinfer
