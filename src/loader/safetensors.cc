#include "loader/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/strict_json.h"

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// Tensors of more dimensions have no use here.
constexpr size_t kMaxRank = 8;

static_assert(std::endian::native == std::endian::little, "tensors are used as they are stored");

// Names stand in error messages and tables.
bool IsPrintableName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<uint64_t> ToUnsigned(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

// Parsing of one header member; errors name the file and the tensor.
class EntryParser {
 public:
  EntryParser(std::string_view what, const std::string& name, const json& value)
      : what_(what), name_(name), value_(value) {}

  Result<SafetensorsEntry> Parse(uint64_t data_begin, uint64_t data_bytes) const {
    if (!value_.is_object()) return Fail("is {} instead of an object", ShownJson(value_));
    SafetensorsEntry entry;
    entry.name = name_;
    DI_ASSIGN_OR_RETURN(entry.dtype, ParseType());
    DI_ASSIGN_OR_RETURN(const uint64_t size, ParseShape(entry));
    const json& range = Member("data_offsets");
    const auto begin = range.is_array() && range.size() == 2 ? ToUnsigned(range[0]) : std::nullopt;
    const auto end = range.is_array() && range.size() == 2 ? ToUnsigned(range[1]) : std::nullopt;
    if (!begin || !end) {
      return Fail("has data_offsets {}; they must be two byte positions", ShownJson(range));
    }
    if (*begin > *end || *end > data_bytes) {
      return Fail("has data_offsets [{}, {}]; they must be ascending and within the {} data bytes",
                  *begin, *end, data_bytes);
    }
    if (*end - *begin != size) {
      return Fail("has {} data bytes, but {} {} needs {}", *end - *begin, DTypeName(entry.dtype),
                  ShapeString(entry.shape), size);
    }
    entry.begin = data_begin + *begin;
    entry.end = data_begin + *end;
    return entry;
  }

 private:
  const json& Member(const char* key) const {
    static const json kNull;
    const auto found = value_.find(key);
    return found == value_.end() ? kNull : *found;
  }

  Result<DType> ParseType() const {
    const json& dtype = Member("dtype");
    const auto known =
        dtype.is_string() ? ParseDType(dtype.get_ref<const std::string&>()) : std::nullopt;
    if (known) return *known;
    auto error = Fail("has dtype {}; known are BF16, F32, F8_E4M3, F8_E8M0, I8, U8, I32, I64",
                      ShownJson(dtype));
    if (dtype.is_string()) error.value().code = ErrorCode::kUnsupported;
    return error;
  }

  // Fills the shape and returns the tensor's size in bytes.
  Result<uint64_t> ParseShape(SafetensorsEntry& entry) const {
    const json& shape = Member("shape");
    if (!shape.is_array() || shape.size() > kMaxRank) {
      return Fail("has shape {}; it must be a list of at most {} sizes", ShownJson(shape),
                  kMaxRank);
    }
    uint64_t bytes = DTypeBytes(entry.dtype);
    constexpr uint64_t kMost = uint64_t{1} << 62;
    for (const json& element : shape) {
      const auto size = ToUnsigned(element);
      if (!size || *size > kMost || (*size != 0 && bytes > kMost / *size)) {
        return Fail("has shape {}; sizes must be non-negative integers with a product below 2^62",
                    ShownJson(shape));
      }
      bytes *= *size;
      entry.shape.push_back(static_cast<int64_t>(*size));
    }
    return bytes;
  }

  template <typename... Args>
  tl::unexpected<Error> Fail(fmt::format_string<Args...> format, Args&&... args) const {
    return MakeError(ErrorCode::kDataLoss, "{}: tensor {} {}", what_, name_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view what_;
  const std::string& name_;
  const json& value_;
};

// Sorts by position and requires the ranges to lie back to back over [begin, end).
Status CheckCoverage(std::vector<SafetensorsEntry>& entries, uint64_t begin, uint64_t end,
                     std::string_view what) {
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  uint64_t covered = begin;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      return MakeError(ErrorCode::kDataLoss,
                       "{}: tensor {} starts at data byte {}, {} the end of the one before it, {}",
                       what, entry.name, entry.begin - begin,
                       entry.begin < covered ? "overlapping" : "after a gap behind",
                       covered - begin);
    }
    covered = entry.end;
  }
  if (covered != end) {
    return MakeError(ErrorCode::kDataLoss, "{}: {} data bytes after the last tensor belong to none",
                     what, end - covered);
  }
  return {};
}

}  // namespace

Result<std::vector<SafetensorsEntry>> ParseSafetensors(std::span<const std::byte> file,
                                                       std::string_view what) {
  uint64_t header_bytes = 0;
  if (file.size() < kLengthBytes) {
    return MakeError(ErrorCode::kDataLoss, "{} has {} bytes, too few for a safetensors header",
                     what, file.size());
  }
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  const uint64_t rest = file.size() - kLengthBytes;
  if (header_bytes > kMaxSafetensorsHeaderBytes || header_bytes > rest) {
    return MakeError(ErrorCode::kDataLoss,
                     "{} announces a header of {} bytes; the file holds {} more and at most {} are "
                     "allowed: it is truncated or no safetensors file",
                     what, header_bytes, rest, kMaxSafetensorsHeaderBytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              header_bytes);
  DI_ASSIGN_OR_RETURN(const json header, ParseStrictJson(text, fmt::format("{}: header", what)));
  if (!header.is_object()) {
    return MakeError(ErrorCode::kDataLoss, "{}: header is {}; it must be an object", what,
                     ShownJson(header));
  }
  const uint64_t data_begin = kLengthBytes + header_bytes;
  std::vector<SafetensorsEntry> entries;
  entries.reserve(header.size());
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    if (!IsPrintableName(name)) {
      return MakeError(ErrorCode::kDataLoss,
                       "{}: {} is no tensor name; names are printable ASCII without spaces", what,
                       ShownJson(json(name)));
    }
    DI_ASSIGN_OR_RETURN(entries.emplace_back(),
                        EntryParser(what, name, value).Parse(data_begin, file.size() - data_begin));
  }
  DI_RETURN_IF_ERROR(CheckCoverage(entries, data_begin, file.size(), what));
  return entries;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::filesystem::path& path) {
  SafetensorsFile opened;
  DI_ASSIGN_OR_RETURN(opened.file_, MappedFile::Open(path));
  const std::span<const std::byte> bytes = opened.file_.bytes();
  DI_ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                      ParseSafetensors(bytes, path.string()));
  opened.tensors_.reserve(entries.size());
  for (SafetensorsEntry& entry : entries) {
    const TensorView view{entry.dtype, std::move(entry.shape), bytes.data() + entry.begin};
    opened.tensors_.push_back({std::move(entry.name), view});
  }
  return opened;
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &found->view;
}

}  // namespace deepinfer
