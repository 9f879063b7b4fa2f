#include "loader/checkpoint_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace deepinfer {
namespace {

constexpr uint64_t kBufferBytes = uint64_t{16} << 20;
constexpr int64_t kPartBytes = int64_t{256} << 10;  // what one thread makes at a time
static_assert(kBufferBytes % RandomTensor::kPartAlignment == 0);
static_assert(kPartBytes % RandomTensor::kPartAlignment == 0);

// A file being written from its start.
class OutputFile {
 public:
  static Result<OutputFile> Create(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    OutputFile file(path, descriptor);
    if (descriptor < 0) return file.Fail("create");
    return file;
  }
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Fail("write");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return {};
  }
  Status Sync() {
    if (::fsync(descriptor_) != 0) return Fail("sync");
    return {};
  }

 private:
  OutputFile(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  tl::unexpected<Error> Fail(std::string_view what) const {
    const int error = errno;
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return MakeError(full ? ErrorCode::kResourceExhausted : ErrorCode::kIo, "cannot {} {}: {}",
                     what, path_.string(), std::strerror(error));
  }

  std::filesystem::path path_;
  int descriptor_;
};

std::string ShapeJson(const Shape& shape) {
  std::string out = "[";
  for (const int64_t size : shape) out += fmt::format("{}{}", out.size() > 1 ? "," : "", size);
  return out + "]";
}

// Length word and header. Names are the contract's: they need no escapes.
std::string Header(std::span<const ExpectedTensor> tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  uint64_t offset = 0;
  for (const ExpectedTensor& tensor : tensors) {
    const uint64_t end = offset + TensorBytes(tensor);
    json += fmt::format(R"(,"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", tensor.name,
                        DTypeName(tensor.dtype), ShapeJson(tensor.shape), offset, end);
    offset = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string out;
  for (int byte = 0; byte < 8; ++byte) {
    out += static_cast<char>((uint64_t{json.size()} >> (8 * byte)) & 0xff);
  }
  return out + json;
}

bool IsScaleOf(const ExpectedTensor& scale, const ExpectedTensor& weight) {
  constexpr std::string_view kScale = ".scale";
  constexpr std::string_view kWeight = ".weight";
  const std::string_view a = scale.name, b = weight.name;
  return a.ends_with(kScale) && b.ends_with(kWeight) &&
         a.substr(0, a.size() - kScale.size()) == b.substr(0, b.size() - kWeight.size());
}

}  // namespace

uint64_t TensorBytes(const ExpectedTensor& tensor) {
  uint64_t bytes = DTypeBytes(tensor.dtype);
  for (const int64_t size : tensor.shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::vector<ShardPlan> PlanShards(std::span<const ExpectedTensor> tensors, uint64_t shard_bytes) {
  std::vector<ShardPlan> shards;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size();) {
    const bool pair = i + 1 < tensors.size() && IsScaleOf(tensors[i + 1], tensors[i]);
    const size_t count = pair ? 2 : 1;
    const uint64_t more = TensorBytes(tensors[i]) + (pair ? TensorBytes(tensors[i + 1]) : 0);
    if (shards.empty() || bytes + more > shard_bytes) {
      shards.push_back({"", i, 0});
      bytes = 0;
    }
    shards.back().count += count;
    bytes += more;
    i += count;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].file_name =
        shards.size() == 1 ? "model.safetensors"
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

Status WriteRandomShard(const std::filesystem::path& path, std::span<const ExpectedTensor> tensors,
                        uint64_t seed, ThreadPool& pool, const std::atomic<bool>* cancelled,
                        uint64_t& done, uint64_t total, const ProgressFn& progress) {
  DI_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const std::string header = Header(tensors);
  DI_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(header))));
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ExpectedTensor& tensor = tensors[i];
    const ExpectedTensor* weight =
        i > 0 && IsScaleOf(tensor, tensors[i - 1]) ? &tensors[i - 1] : nullptr;
    DI_ASSIGN_OR_RETURN(const RandomTensor values, RandomTensor::Create(tensor, weight, seed));
    const uint64_t size = TensorBytes(tensor);
    for (uint64_t offset = 0; offset < size; offset += kBufferBytes) {
      if (cancelled != nullptr && cancelled->load()) {
        return MakeError(ErrorCode::kCancelled, "make-checkpoint cancelled");
      }
      buffer.resize(std::min(kBufferBytes, size - offset));
      pool.ParallelFor(static_cast<int64_t>(buffer.size()), kPartBytes,
                       [&](int64_t begin, int64_t end, int) {
                         values.Fill(offset + static_cast<uint64_t>(begin),
                                     std::span(buffer).subspan(static_cast<size_t>(begin),
                                                               static_cast<size_t>(end - begin)));
                       });
      DI_RETURN_IF_ERROR(file.Write(buffer));
      done += buffer.size();
      if (progress) progress(tensor.name, done, total);
    }
  }
  return file.Sync();
}

std::string ShardIndex(std::span<const ExpectedTensor> tensors, std::span<const ShardPlan> shards) {
  std::map<std::string_view, std::string_view> files;
  uint64_t total = 0;
  for (const ShardPlan& shard : shards) {
    for (const ExpectedTensor& tensor : tensors.subspan(shard.first, shard.count)) {
      files[tensor.name] = shard.file_name;
      total += TensorBytes(tensor);
    }
  }
  std::string out =
      fmt::format("{{\n\"metadata\": {{\"total_size\": {}}},\n\"weight_map\": {{", total);
  const char* separator = "\n";
  for (const auto& [name, file] : files) {
    out += fmt::format("{}\"{}\": \"{}\"", separator, name, file);
    separator = ",\n";
  }
  return out + "\n}\n}\n";
}

}  // namespace deepinfer
