// From errors as values to what the public API throws.
#pragma once

#include <utility>

#include "base/result.h"
#include "deepinfer/error.h"

namespace deepinfer {

// Throws Exception.
[[noreturn]] void ThrowError(const Error& error);

template <typename T>
T ValueOrThrow(Result<T> result) {
  if (!result) ThrowError(result.error());
  return std::move(*result);
}

}  // namespace deepinfer
