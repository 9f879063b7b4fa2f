#include "loader/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <mutex>

namespace deepinfer {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxHeaders = 256;
constexpr long kConnectTimeoutSeconds = 30;

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

std::string UrlPart(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string out(text);
  curl_free(text);
  return out;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

bool TransientStatus(int status) {
  return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

bool TransientCurlCode(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

ErrorCode CodeOfStatus(int status) {
  if (status == 404 || status == 410) return ErrorCode::kNotFound;
  if (status == 401 || status == 403) return ErrorCode::kInvalidArgument;
  return ErrorCode::kIo;
}

// State of one exchange, seen by libcurl's callbacks.
struct Exchange {
  const BodySink* sink = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  uint64_t offset = 0;
  HttpResponse response;
  Status status;
  bool body_started = false;
};

bool IsBody(int status) { return status == 200 || status == 206; }

// Checks the start of a 206 body and tells the sink about the response.
Status BeginBody(Exchange& exchange) {
  exchange.body_started = true;
  HttpResponse& response = exchange.response;
  response.body_offset = 0;
  if (response.status == 206) {
    // "bytes FIRST-LAST/TOTAL"
    const std::string& range = response.headers["content-range"];
    const auto first = range.rfind("bytes ", 0) == 0
                           ? ParseNumber(std::string_view(range).substr(6))
                           : std::nullopt;
    if (!first || *first != exchange.offset) {
      return MakeError(ErrorCode::kIo, "asked for bytes from {}, got Content-Range \"{}\"",
                       exchange.offset, range);
    }
    response.body_offset = *first;
  }
  return exchange.sink->begin ? exchange.sink->begin(response) : Status();
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  if (line.rfind("HTTP/", 0) == 0) {  // interim responses start over
    exchange.response = HttpResponse();
    const size_t space = line.find(' ');
    const auto status =
        space == line.npos ? std::nullopt : ParseNumber(Trim(line.substr(space + 1)));
    exchange.response.status = status ? static_cast<int>(*status) : 0;
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon != line.npos && exchange.response.headers.size() < kMaxHeaders) {
    exchange.response.headers[Lower(Trim(line.substr(0, colon)))] = Trim(line.substr(colon + 1));
  }
  return line.size();
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const size_t bytes = size * count;
  if (!IsBody(exchange.response.status)) return bytes;
  if (!exchange.body_started) exchange.status = BeginBody(exchange);
  if (exchange.status && bytes > 0) {
    exchange.status = exchange.sink->write(std::as_bytes(std::span(data, bytes)));
  }
  return exchange.status ? bytes : 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Exchange& exchange = *static_cast<Exchange*>(user);
  return exchange.cancelled != nullptr && exchange.cancelled->load(std::memory_order_relaxed);
}

// What the server says about itself, fit for one line of a message.
std::string ServerMessage(const HttpResponse& response) {
  const auto found = response.headers.find("x-error-message");
  if (found == response.headers.end()) return {};
  std::string text = ": ";
  for (const char c : found->second.substr(0, 200)) {
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return text;
}

HttpFailure StatusFailure(const HttpResponse& response, const std::string& url) {
  HttpFailure failure;
  failure.status = response.status;
  failure.transient = TransientStatus(response.status);
  const bool denied = response.status == 401 || response.status == 403;
  failure.error = Error{CodeOfStatus(response.status),
                        fmt::format("GET {}: status {}, expected 200{}{}", UrlForMessage(url),
                                    response.status, ServerMessage(response),
                                    denied ? "; a token with access is needed (HF_TOKEN)" : "")};
  const auto wait = response.headers.find("retry-after");
  if (wait != response.headers.end()) {
    const uint64_t seconds = ParseNumber(wait->second).value_or(0);
    failure.retry_after = std::chrono::seconds(std::min<uint64_t>(seconds, 60));
  }
  return failure;
}

}  // namespace

struct HttpClient::Handle {
  CURL* curl = nullptr;
  const std::atomic<bool>* cancelled = nullptr;
  long stall_seconds = 0;

  CURLcode Perform(const HttpRequest& request, bool send_token, Exchange& exchange,
                   std::string& detail);
};

HttpClient::HttpClient(std::chrono::seconds stall_timeout, const std::atomic<bool>* cancelled)
    : handle_(std::make_unique<Handle>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  handle_->curl = curl_easy_init();
  handle_->cancelled = cancelled;
  handle_->stall_seconds = static_cast<long>(stall_timeout.count());
}

HttpClient::~HttpClient() { curl_easy_cleanup(handle_->curl); }

// One request without following redirects.
CURLcode HttpClient::Handle::Perform(const HttpRequest& request, bool send_token,
                                     Exchange& exchange, std::string& detail) {
  curl_easy_reset(curl);  // keeps connections
  char message[CURL_ERROR_SIZE] = "";
  curl_slist* headers = nullptr;
  if (send_token) {
    headers = curl_slist_append(headers, ("Authorization: Bearer " + request.token).c_str());
  }
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "deepinfer");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectTimeoutSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, stall_seconds);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L * 1024);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  // CURLOPT_RESUME_FROM would fail on servers that ignore ranges; those are handled by the sink.
  std::string range;
  if (request.offset > 0) {
    range = fmt::format("{}-", request.offset);
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  }
  const CURLcode code = curl_easy_perform(curl);
  detail = message[0] != '\0' ? message : curl_easy_strerror(code);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, nullptr);
  curl_slist_free_all(headers);
  return code;
}

std::optional<HttpFailure> HttpClient::Get(const HttpRequest& request, const BodySink& sink,
                                           HttpResponse& response) {
  const auto fail = [](ErrorCode code, std::string message, bool transient) {
    return HttpFailure{Error{code, std::move(message)}, transient, 0, std::chrono::seconds(0)};
  };
  if (handle_->curl == nullptr) {
    return fail(ErrorCode::kResourceExhausted, "libcurl gave no handle", false);
  }
  const std::string origin = UrlOrigin(request.url);
  if (origin.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("not an http or https URL: {}", UrlForMessage(request.url)), false);
  }
  HttpRequest hop = request;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    Exchange exchange{&sink, handle_->cancelled, request.offset, {}, {}, false};
    std::string detail;
    const bool send_token = !request.token.empty() && UrlOrigin(hop.url) == origin;
    const CURLcode code = handle_->Perform(hop, send_token, exchange, detail);
    const std::string shown = UrlForMessage(hop.url);
    if (!exchange.status) {
      HttpFailure failure{exchange.status.error(), false, exchange.response.status, {}};
      failure.error.message = fmt::format("GET {}: {}", shown, failure.error.message);
      return failure;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
      return fail(ErrorCode::kCancelled, fmt::format("GET {}: cancelled", shown), false);
    }
    const int status = exchange.response.status;
    if (code == CURLE_OK && status >= 301 && status <= 308 && status != 304) {
      char* next = nullptr;
      curl_easy_getinfo(handle_->curl, CURLINFO_REDIRECT_URL, &next);
      const std::string target = next == nullptr ? "" : next;
      const std::string target_origin = UrlOrigin(target);
      const bool downgrade =
          hop.url.rfind("https:", 0) == 0 && target_origin.rfind("http:", 0) == 0;
      if (target_origin.empty() || downgrade) {
        return fail(ErrorCode::kIo,
                    fmt::format("GET {}: status {} redirects to {}, which is refused", shown,
                                status, target.empty() ? "nowhere" : UrlForMessage(target)),
                    false);
      }
      hop.url = target;
      continue;
    }
    if (status != 0 && !IsBody(status)) return StatusFailure(exchange.response, hop.url);
    if (code != CURLE_OK) {
      return fail(ErrorCode::kIo, fmt::format("GET {}: {}", shown, detail),
                  TransientCurlCode(code));
    }
    if (!exchange.body_started) {  // an empty body
      exchange.status = BeginBody(exchange);
      if (!exchange.status) return HttpFailure{exchange.status.error(), false, status, {}};
    }
    response = std::move(exchange.response);
    return std::nullopt;
  }
  return fail(
      ErrorCode::kIo,
      fmt::format("GET {}: more than {} redirects", UrlForMessage(request.url), kMaxRedirects),
      false);
}

std::string UrlOrigin(const std::string& text) {
  CURLU* url = curl_url();
  std::string origin;
  if (url != nullptr && curl_url_set(url, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK) {
    const std::string scheme = Lower(UrlPart(url, CURLUPART_SCHEME, 0));
    if (scheme == "http" || scheme == "https") {
      origin = fmt::format("{}://{}:{}", scheme, Lower(UrlPart(url, CURLUPART_HOST, 0)),
                           UrlPart(url, CURLUPART_PORT, CURLU_DEFAULT_PORT));
    }
  }
  curl_url_cleanup(url);
  return origin;
}

std::string UrlForMessage(std::string_view url) {
  std::string out(url.substr(0, url.find_first_of("?#")));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  // user:password@ never belongs into a message.
  const size_t host = out.find("://");
  const size_t at = out.find('@');
  if (host != out.npos && at != out.npos && at < out.find('/', host + 3)) {
    out.erase(host + 3, at + 1 - (host + 3));
  }
  return out;
}

std::string EncodeUrlPath(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
                       c == '_' || c == '~' || c == '/';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace deepinfer
