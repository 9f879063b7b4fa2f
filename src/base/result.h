// Errors as values. Everything below the public API returns Result<T>; exceptions
// are thrown only at that edge.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace deepinfer {

enum class ErrorCode {
  kInvalidArgument,    // a request, option or argument is outside its allowed range
  kNotFound,           // a file, folder, tensor or key does not exist
  kDataLoss,           // a file is truncated, inconsistent or fails its checksum
  kUnsupported,        // well-formed, but not something this engine runs
  kResourceExhausted,  // memory, disk or context length
  kIo,                 // the operating system or the network failed
  kCancelled,
  kInternal,
};

// The message names the thing, its value and the allowed range; it is complete
// without the code.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// MakeError(ErrorCode::kNotFound, "no file {}", path) converts to any Result<T>.
template <typename... Args>
tl::unexpected<Error> MakeError(ErrorCode code, fmt::format_string<Args...> format,
                                Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// Forwards an error unchanged, or with "context: " before its message.
inline tl::unexpected<Error> Forward(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> Forward(Error error, const std::string& context) {
  error.message = context + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace deepinfer

#define DI_CONCAT_INNER(a, b) a##b
#define DI_CONCAT(a, b) DI_CONCAT_INNER(a, b)

// DI_RETURN_IF_ERROR(expr): returns expr's error from the enclosing function.
#define DI_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    auto di_status = (expr);                                                   \
    if (!di_status) return ::deepinfer::Forward(std::move(di_status).error()); \
  } while (false)

// DI_ASSIGN_OR_RETURN(auto x, expr): x = value of expr, or returns its error.
#define DI_ASSIGN_OR_RETURN(lhs, expr)                                               \
  auto DI_CONCAT(di_result_, __LINE__) = (expr);                                     \
  if (!DI_CONCAT(di_result_, __LINE__))                                              \
    return ::deepinfer::Forward(std::move(DI_CONCAT(di_result_, __LINE__)).error()); \
  lhs = std::move(*DI_CONCAT(di_result_, __LINE__))
