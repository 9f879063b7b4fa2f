// What the public API throws. Nothing below it throws: inside, errors are values.
#pragma once

#include <stdexcept>
#include <string>

namespace deepinfer {

// The message names the thing, its value and the allowed range; it is complete without the kind.
class Exception : public std::runtime_error {
 public:
  enum class Kind {
    kInvalidArgument,    // a request, option or argument is outside its allowed range
    kNotFound,           // a file, folder, tensor or key does not exist
    kDataLoss,           // a file is truncated, inconsistent or fails its checksum
    kUnsupported,        // well-formed, but not something this engine runs
    kResourceExhausted,  // memory, disk or context length
    kIo,                 // the operating system or the network failed
    kCancelled,
    kInternal,
  };

  Exception(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace deepinfer
