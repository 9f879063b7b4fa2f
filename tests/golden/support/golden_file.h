// Golden vectors as plain arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/numeric.h"
#include "loader/safetensors.h"

namespace deepinfer::golden {

// The repository's copy of the small sets.
inline std::filesystem::path DataDir() {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / "tests/golden/data";
}

// The toy models with their captures; absent outside the development tree.
inline std::filesystem::path ToysDir() {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / "../shared/goldens";
}

// A loaded file. Missing files and tensors fail the running test by throwing.
class GoldenFile {
 public:
  explicit GoldenFile(const std::filesystem::path& path) : path_(path) {
    auto file = SafetensorsFile::Open(path);
    if (!file) throw std::runtime_error(file.error().message);
    file_ = std::move(*file);
  }

  bool Has(std::string_view name) const { return file_.Find(name) != nullptr; }
  const std::vector<SafetensorsFile::Tensor>& tensors() const { return file_.tensors(); }

  const TensorView& View(std::string_view name) const {
    const TensorView* view = file_.Find(name);
    if (view == nullptr)
      throw std::runtime_error(path_.string() + ": no tensor " + std::string(name));
    return *view;
  }

  // Elements of any dtype, copied bit for bit.
  template <typename T>
  std::vector<T> Raw(std::string_view name) const {
    const TensorView& view = View(name);
    std::vector<T> out(view.bytes() / sizeof(T));
    std::memcpy(out.data(), view.data, view.bytes());
    return out;
  }

 private:
  std::filesystem::path path_;
  SafetensorsFile file_;
};

// Every element as a double: BF16, F32, I32, I64, U8.
inline std::vector<double> Values(const TensorView& view) {
  std::vector<double> out(view.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* p = view.data + i * DTypeBytes(view.dtype);
    const auto load = [p](auto value) {
      std::memcpy(&value, p, sizeof(value));
      return value;
    };
    switch (view.dtype) {
      case DType::kBF16:
        out[i] = ToFloat(bf16{load(uint16_t{})});
        break;
      case DType::kF32:
        out[i] = load(float{});
        break;
      case DType::kI32:
        out[i] = load(int32_t{});
        break;
      case DType::kI64:
        out[i] = static_cast<double>(load(int64_t{}));
        break;
      default:
        out[i] = static_cast<double>(load(uint8_t{}));
        break;
    }
  }
  return out;
}

}  // namespace deepinfer::golden
