// A complete checkpoint of a few hundred kilobytes, made from the tensor contract, to be broken by
// tests in every way.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "loader/tensor_contract.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace deepinfer {

// An empty folder of its own, removed on destruction.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct FileTensor {
  std::string dtype;  // as in a header, also unknown ones
  Shape shape;
  std::string bytes;
};
using FileTensors = std::map<std::string, FileTensor>;

// A whole safetensors file with the tensors back to back in the order of their names.
std::string SafetensorsBytes(const FileTensors& tensors);
// A file with this header and data, whatever they say.
std::string SafetensorsBytes(const std::string& header, const std::string& data);

// A tensor without data.
StoredTensor Described(const std::string& name, DType dtype, const Shape& shape,
                       const std::string& shard = "model.safetensors");

void WriteBytes(const std::filesystem::path& path, const std::string& bytes);

// Three layers of ratio 0, 2, 1, one Engram table, one draft stage.
nlohmann::json TinyConfigJson();
ModelConfig TinyConfig();

// All tensors of TinyConfig(), each byte 0x40 (a finite number in every dtype, a scale in range).
FileTensors TinyTensors();

void WriteConfig(const std::filesystem::path& dir, const nlohmann::json& config);
// config.json and model.safetensors.
void WriteSingle(const std::filesystem::path& dir, const FileTensors& tensors);
// config.json, `shards` files and their index; tensors dealt out in turn. Returns the index.
nlohmann::json WriteSharded(const std::filesystem::path& dir, const FileTensors& tensors,
                            int shards);
std::string ShardName(int shard, int shards);

}  // namespace deepinfer
