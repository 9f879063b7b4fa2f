// Golden vectors as plain arrays, and the measures that goldens/README.md states tolerances in.
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

struct Difference {
  size_t count = 0;         // elements
  size_t differing = 0;     // elements that are not equal
  double max_abs = 0;       // over finite reference elements
  double rms_relative = 0;  // RMS of the error / RMS of the reference
};

inline Difference Compare(const std::vector<double>& got, const std::vector<double>& want) {
  Difference d;
  d.count = want.size();
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] != want[i] && !(std::isnan(got[i]) && std::isnan(want[i]))) ++d.differing;
    if (!std::isfinite(want[i]) || !std::isfinite(got[i])) continue;
    d.max_abs = std::max(d.max_abs, std::fabs(got[i] - want[i]));
    error += (got[i] - want[i]) * (got[i] - want[i]);
    power += want[i] * want[i];
  }
  d.rms_relative = power > 0 ? std::sqrt(error / power) : std::sqrt(error);
  return d;
}

}  // namespace deepinfer::golden
