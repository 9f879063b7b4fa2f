// Streaming digests of file contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace deepinfer {

enum class DigestKind {
  kSha256,   // of the contents; names large files in a hub repository
  kGitBlob,  // SHA-1 of "blob SIZE\0" and the contents; names small ones
};

// Not thread-safe.
class Digest {
 public:
  // `size` is the contents' length in bytes, known in advance; only kGitBlob hashes it.
  static Result<Digest> Create(DigestKind kind, uint64_t size);
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void Update(std::span<const std::byte> bytes);
  // Lower-case hexadecimal. Call once, last.
  std::string Finish();

 private:
  struct State;
  explicit Digest(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace deepinfer
