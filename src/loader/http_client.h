// HTTP GET over libcurl, as the downloader needs it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace deepinfer {

struct HttpRequest {
  std::string url;
  // Sent as "Authorization: Bearer" to the scheme, host and port of `url` only, never to a redirect
  // target elsewhere. Empty: none.
  std::string token;
  // Asks for the bytes from here on (0: the whole body).
  uint64_t offset = 0;
};

struct HttpResponse {
  int status = 0;
  // Of the last response, keys in lower case.
  std::map<std::string, std::string> headers;
  // First byte of the body inside the resource: `offset` for 206, 0 for 200.
  uint64_t body_offset = 0;
};

// What went wrong, and whether the same request may succeed later.
struct HttpFailure {
  Error error;
  bool transient = false;
  int status = 0;  // 0: no response
  std::chrono::seconds retry_after{0};
};

// Called before the first byte of a successful body, then with each piece. An error ends the
// transfer and comes back unchanged.
struct BodySink {
  std::function<Status(const HttpResponse&)> begin;
  std::function<Status(std::span<const std::byte>)> write;
};

// One connection cache, used by one thread at a time.
class HttpClient {
 public:
  // A transfer that moves no byte for `stall_timeout` fails (transient). `cancelled` may be null.
  HttpClient(std::chrono::seconds stall_timeout, const std::atomic<bool>* cancelled);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Follows up to ten redirects, http and https only, never from https to http. Success is status
  // 200, or 206 that starts at `offset`; then `response` is filled.
  std::optional<HttpFailure> Get(const HttpRequest& request, const BodySink& sink,
                                 HttpResponse& response);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

// "scheme://host:port" of a URL with the default port made explicit, lower case; empty when the
// text is not an http or https URL.
std::string UrlOrigin(const std::string& url);

// The URL without query and fragment, for messages (queries of redirect targets hold signatures).
std::string UrlForMessage(std::string_view url);

// Percent-encodes everything but unreserved characters and '/'.
std::string EncodeUrlPath(std::string_view path);

}  // namespace deepinfer
