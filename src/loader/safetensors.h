// Reads safetensors files: an 8-byte little-endian header length, a JSON header, tensor bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "tensor/tensor_view.h"

namespace deepinfer {

// Longest header accepted; the format's own readers have the same limit.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  // Byte range in the whole file (not in the data section).
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The tensors of a complete file in the order of their bytes. The ranges lie back to back and
// cover the data section, and each is as long as its shape and dtype say; "__metadata__" is
// skipped. Anything else is an error that starts with `what` and names the tensor.
Result<std::vector<SafetensorsEntry>> ParseSafetensors(std::span<const std::byte> file,
                                                       std::string_view what);

// One mapped file and views of its tensors. The views live as long as the object, also when it is
// moved.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string name;
    TensorView view;
  };

  static Result<SafetensorsFile> Open(const std::filesystem::path& path);

  // In the order of their bytes.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // Null when there is no tensor of this name. Linear in the number of tensors.
  const TensorView* Find(std::string_view name) const;
  const MappedFile& file() const { return file_; }

 private:
  MappedFile file_;
  std::vector<Tensor> tensors_;
};

}  // namespace deepinfer
