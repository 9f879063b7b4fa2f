#include "base/resident_memory.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {
namespace {

// The bytes of "NAME:   123 kB" when `line` has that name.
std::optional<uint64_t> Field(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  const size_t digit = line.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  uint64_t kib = 0;
  const char* end = line.data() + line.size();
  if (std::from_chars(line.data() + digit, end, kib).ec != std::errc()) return std::nullopt;
  return kib * 1024;
}

}  // namespace

Result<ResidentMemory> ReadResidentMemory() {
  std::ifstream file("/proc/self/status");
  std::optional<uint64_t> anonymous, file_backed, shared;
  for (std::string line; std::getline(file, line);) {
    if (const auto value = Field(line, "RssAnon:")) anonymous = value;
    if (const auto value = Field(line, "RssFile:")) file_backed = value;
    if (const auto value = Field(line, "RssShmem:")) shared = value;
  }
  if (!anonymous || !file_backed) {
    return MakeError(ErrorCode::kUnsupported,
                     "the system does not tell this process's resident memory (/proc/self/status "
                     "has no RssAnon and RssFile)");
  }
  // Files of a memory file system count as shared memory.
  return ResidentMemory{*anonymous, *file_backed + shared.value_or(0)};
}

}  // namespace deepinfer
