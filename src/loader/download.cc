#include "loader/download.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "loader/http_client.h"
#include "loader/hub_listing.h"
#include "loader/partial_blob.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListingBytes = size_t{64} << 20;
constexpr std::chrono::milliseconds kMaxBackoff{60000};

Status CheckOptions(const DownloadOptions& options) {
  if (!IsRepositoryId(options.repository)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "repository \"{}\" is not of the form org/name (letters, digits, -, _, .)",
                     options.repository);
  }
  if (!CheckHubFileName(options.revision)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "revision \"{}\" is not a branch, tag or commit name", options.revision);
  }
  if (UrlOrigin(options.endpoint).empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "endpoint \"{}\" is not an http or https URL",
                     options.endpoint);
  }
  for (const char c : options.token) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "the access token holds characters other than printable ASCII");
    }
  }
  if (options.cache_folder.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the cache folder is empty");
  }
  if (options.max_attempts < 1 || options.max_attempts > 100) {
    return MakeError(ErrorCode::kInvalidArgument, "max_attempts is {}, allowed are 1 to 100",
                     options.max_attempts);
  }
  return {};
}

uint64_t SizeOf(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

bool IsComplete(const fs::path& blob, const HubFile& file) {
  std::error_code error;
  return fs::is_regular_file(blob, error) && fs::file_size(blob, error) == file.size && !error;
}

class RepositoryDownload {
 public:
  RepositoryDownload(const DownloadOptions& options, const ProgressFn& progress)
      : options_(options),
        progress_(progress),
        repository_{options.cache_folder, options.repository},
        endpoint_(options.endpoint),
        client_(options.stall_timeout, options.cancelled) {
    while (endpoint_.back() == '/') endpoint_.pop_back();
  }

  Result<fs::path> Run();

 private:
  Result<HubListing> FetchListing();
  Status CheckFreeSpace(const HubListing& listing) const;
  Status FetchBlob(const HubFile& file, const std::string& url);
  Status FillBlob(const HubFile& file, const std::string& url, PartialBlob& blob);
  std::optional<HttpFailure> TransferOnce(const HubFile& file, const std::string& url,
                                          PartialBlob& blob);
  // Sleeps before attempt `failures` + 1, or gives the failure back when it is final.
  Status BackOff(const HttpFailure& failure, int failures) const;
  bool cancelled() const { return options_.cancelled != nullptr && options_.cancelled->load(); }
  void Report(const std::string& what, uint64_t current_bytes) const {
    if (progress_) progress_(what, finished_bytes_ + current_bytes, total_bytes_);
  }

  const DownloadOptions& options_;
  const ProgressFn& progress_;
  HubRepository repository_;
  std::string endpoint_;
  HttpClient client_;
  uint64_t finished_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

Status RepositoryDownload::BackOff(const HttpFailure& failure, int failures) const {
  if (!failure.transient) return Forward(failure.error);
  if (failures >= options_.max_attempts) {
    Error error = failure.error;
    error.message += fmt::format("; gave up after {} attempts", failures);
    return Forward(std::move(error));
  }
  auto wait = options_.first_backoff * (int64_t{1} << std::min(failures - 1, 16));
  wait = std::max<std::chrono::milliseconds>(std::min(wait, kMaxBackoff), failure.retry_after);
  const auto until = std::chrono::steady_clock::now() + wait;
  while (std::chrono::steady_clock::now() < until) {
    if (cancelled()) return MakeError(ErrorCode::kCancelled, "download cancelled");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    std::this_thread::sleep_for(
        std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(100)));
  }
  return {};
}

Result<HubListing> RepositoryDownload::FetchListing() {
  std::string revision;
  for (const char c : EncodeUrlPath(options_.revision)) {
    if (c == '/') {
      revision += "%2F";
    } else {
      revision += c;
    }
  }
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_,
                                      options_.repository, revision);
  for (int failures = 0;;) {
    std::string body;
    BodySink sink;
    sink.write = [&](std::span<const std::byte> bytes) -> Status {
      if (body.size() + bytes.size() > kMaxListingBytes) {
        return MakeError(ErrorCode::kDataLoss, "the file listing is longer than {} bytes",
                         kMaxListingBytes);
      }
      body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    };
    HttpResponse response;
    const auto failure = client_.Get({url, options_.token, 0}, sink, response);
    if (failure) {
      DI_RETURN_IF_ERROR(BackOff(*failure, ++failures));
      continue;
    }
    auto listing = ParseHubListing(body);
    if (!listing) return Forward(std::move(listing).error(), "GET " + UrlForMessage(url));
    return listing;
  }
}

Status RepositoryDownload::CheckFreeSpace(const HubListing& listing) const {
  uint64_t needed = 0;
  for (const HubFile& file : listing.files) {
    if (IsComplete(repository_.blob(file.digest), file)) continue;
    const uint64_t present = SizeOf(repository_.partial_blob(file.digest));
    needed += file.size - std::min(present, file.size);
  }
  struct statvfs info{};
  if (::statvfs(repository_.folder().c_str(), &info) != 0) return {};
  const uint64_t free = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  if (needed > free) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "{} needs {} more bytes in {}, which has {} bytes free", options_.repository,
                     needed, options_.cache_folder.string(), free);
  }
  return {};
}

std::optional<HttpFailure> RepositoryDownload::TransferOnce(const HubFile& file,
                                                            const std::string& url,
                                                            PartialBlob& blob) {
  const uint64_t offset = blob.size();
  BodySink sink;
  sink.begin = [&](const HttpResponse& response) -> Status {
    // Before anything is overwritten: does the server mean the same file?
    const auto length = response.headers.find("content-length");
    if (length != response.headers.end()) {
      const std::string expected = std::to_string(file.size - response.body_offset);
      if (length->second != expected) {
        return MakeError(ErrorCode::kDataLoss, "Content-Length is {}, expected {}",
                         UrlForMessage(length->second), expected);
      }
    }
    if (response.body_offset != blob.size()) return blob.Restart();
    return {};
  };
  sink.write = [&](std::span<const std::byte> bytes) -> Status {
    DI_RETURN_IF_ERROR(blob.Append(bytes));
    Report(file.name, blob.size());
    return {};
  };
  HttpResponse response;
  auto failure = client_.Get({url, options_.token, offset}, sink, response);
  if (failure && failure->status == 416 && offset > 0) {
    // The server knows fewer bytes than are here: start over.
    const Status restarted = blob.Restart();
    if (!restarted) return HttpFailure{restarted.error(), false, 416, {}};
    failure->transient = true;
  }
  if (!failure && blob.size() < file.size) {
    return HttpFailure{
        Error{ErrorCode::kIo, fmt::format("GET {}: ended after {} of {} bytes", UrlForMessage(url),
                                          blob.size(), file.size)},
        true,
        response.status,
        {}};
  }
  return failure;
}

Status RepositoryDownload::FillBlob(const HubFile& file, const std::string& url,
                                    PartialBlob& blob) {
  int failures = 0;
  while (blob.size() < file.size) {
    const uint64_t before = blob.size();
    const auto failure = TransferOnce(file, url, blob);
    if (!failure) break;
    failures = blob.size() > before ? 1 : failures + 1;
    DI_RETURN_IF_ERROR(BackOff(*failure, failures));
  }
  return {};
}

Status RepositoryDownload::FetchBlob(const HubFile& file, const std::string& url) {
  const fs::path path = repository_.blob(file.digest);
  if (IsComplete(path, file)) return {};
  DI_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(repository_.lock(file.digest),
                                                             [this] { return cancelled(); }));
  if (IsComplete(path, file)) return {};  // somebody else fetched it meanwhile

  DI_ASSIGN_OR_RETURN(PartialBlob blob,
                      PartialBlob::Open(repository_.partial_blob(file.digest), file));
  // Bytes left by an earlier run may be damaged (a power cut), so a bad checksum with them gets
  // one fresh start; without them the server is to blame.
  bool has_old_bytes = blob.size() > 0;
  for (;;) {
    DI_RETURN_IF_ERROR(FillBlob(file, url, blob));
    Status published = blob.Publish(path);
    if (published) return {};
    if (published.error().code != ErrorCode::kDataLoss || !has_old_bytes) {
      return Forward(std::move(published).error(), "GET " + UrlForMessage(url));
    }
    has_old_bytes = false;
  }
}

Result<fs::path> RepositoryDownload::Run() {
  std::error_code error;
  fs::create_directories(repository_.folder() / "blobs", error);
  if (error) {
    return MakeError(ErrorCode::kIo, "cannot create folder {}: {}",
                     (repository_.folder() / "blobs").string(), error.message());
  }
  DI_ASSIGN_OR_RETURN(const HubListing listing, FetchListing());
  for (const HubFile& file : listing.files) total_bytes_ += file.size;
  DI_RETURN_IF_ERROR(CheckFreeSpace(listing));

  for (const HubFile& file : listing.files) {
    if (cancelled()) return MakeError(ErrorCode::kCancelled, "download cancelled");
    const std::string url = fmt::format("{}/{}/resolve/{}/{}", endpoint_, options_.repository,
                                        listing.commit, EncodeUrlPath(file.name));
    DI_RETURN_IF_ERROR(FetchBlob(file, url));
    DI_RETURN_IF_ERROR(LinkIntoSnapshot(repository_, listing.commit, file.name, file.digest));
    finished_bytes_ += file.size;
    Report(file.name, 0);
  }
  if (options_.revision != listing.commit) {
    const fs::path reference = repository_.reference(options_.revision);
    fs::create_directories(reference.parent_path(), error);
    DI_RETURN_IF_ERROR(WriteFileAtomically(reference, listing.commit));
  }
  return repository_.snapshot(listing.commit);
}

}  // namespace

Result<DownloadOptions> DownloadOptionsFromEnvironment(const EnvironmentFn& environment) {
  DownloadOptions options;
  DI_ASSIGN_OR_RETURN(options.cache_folder, HubCacheFolder(environment));
  if (const auto endpoint = NonEmptyVariable(environment, "HF_ENDPOINT")) {
    options.endpoint = *endpoint;
  }
  options.token = NonEmptyVariable(environment, "HF_TOKEN").value_or("");
  return options;
}

Result<fs::path> DownloadRepository(const DownloadOptions& options, const ProgressFn& progress) {
  DI_RETURN_IF_ERROR(CheckOptions(options));
  return RepositoryDownload(options, progress).Run();
}

}  // namespace deepinfer
