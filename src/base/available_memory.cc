#include "base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace deepinfer {
namespace {

// The number at the file's beginning; empty for "max", or without the file.
std::optional<uint64_t> ReadNumber(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// The value of a line "key   number" of a file.
std::optional<uint64_t> ReadField(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  uint64_t value = 0;
  while (in >> word) {
    if (word == key && in >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> AvailableMemoryBytes(const std::filesystem::path& root) {
  const auto available = ReadField(root / "proc/meminfo", "MemAvailable:");
  if (!available) {
    return MakeError(ErrorCode::kUnsupported, "{} has no line MemAvailable",
                     (root / "proc/meminfo").string());
  }
  uint64_t bytes = *available * 1024;
  const std::filesystem::path group = root / "sys/fs/cgroup";
  const auto limit = ReadNumber(group / "memory.max");
  const auto used = ReadNumber(group / "memory.current");
  if (limit && used) {
    // Pages of files count as used, but give way.
    const uint64_t cached = ReadField(group / "memory.stat", "inactive_file").value_or(0);
    const uint64_t held = *used - std::min(*used, cached);
    bytes = std::min(bytes, *limit - std::min(*limit, held));
  }
  return bytes;
}

}  // namespace deepinfer
