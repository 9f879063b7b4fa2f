// A typed, shaped, read-only view of bytes somebody else owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace deepinfer {

using Shape = std::vector<int64_t>;

// "[3, 128]"
std::string ShapeString(const Shape& shape);

// Row-major and contiguous. `data` may be unaligned for its dtype: files give no
// promise, so readers copy or use unaligned loads.
struct TensorView {
  DType dtype = DType::kU8;
  Shape shape;
  const std::byte* data = nullptr;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(elements()) * DTypeBytes(dtype); }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

// Where weights come from. Implementations own the bytes and outlive every view.
// Thread-safe for reading.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Null when there is no tensor of this name.
  virtual const TensorView* Find(std::string_view name) const = 0;
};

}  // namespace deepinfer
