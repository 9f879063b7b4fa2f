// A small HTTP/1.1 server on 127.0.0.1 for tests: one answer a connection.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace deepinfer {

struct TestRequest {
  std::string path;                            // with query
  std::map<std::string, std::string> headers;  // keys in lower case
  std::string header(const std::string& key) const {
    const auto found = headers.find(key);
    return found == headers.end() ? std::string() : found->second;
  }
};

struct TestReply {
  int status = 200;
  std::string body;
  std::vector<std::string> headers;
  // Bytes of the body sent before the connection is cut; Content-Length still tells the whole.
  size_t cut_after = std::numeric_limits<size_t>::max();
};

class HttpTestServer {
 public:
  using Handler = std::function<TestReply(const TestRequest&)>;

  explicit HttpTestServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, length), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, generic, &length), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~HttpTestServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (std::thread& worker : workers_) worker.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<TestRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Number of requests whose path contains `text`.
  size_t Count(const std::string& text) const {
    size_t count = 0;
    for (const TestRequest& request : requests()) count += request.path.find(text) != text.npos;
    return count;
  }

 private:
  void Accept() {
    while (!stopping_) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      workers_.emplace_back([this, connection] {
        Serve(connection);
        ::close(connection);
      });
    }
  }

  static bool ReadRequest(int connection, TestRequest& request) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == text.npos) {
      const ssize_t n = ::recv(connection, buffer, sizeof(buffer), 0);
      if (n <= 0) return false;
      text.append(buffer, static_cast<size_t>(n));
    }
    const size_t space = text.find(' ');
    request.path = text.substr(space + 1, text.find(' ', space + 1) - space - 1);
    for (size_t line = text.find("\r\n") + 2; text.compare(line, 2, "\r\n") != 0;) {
      const size_t end = text.find("\r\n", line);
      const size_t colon = text.find(':', line);
      std::string key = text.substr(line, colon - line);
      for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers[key] = text.substr(colon + 2, end - colon - 2);
      line = end + 2;
    }
    return true;
  }

  void Serve(int connection) {
    TestRequest request;
    if (!ReadRequest(connection, request)) return;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const TestReply reply = handler_(request);
    std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " Test\r\nConnection: close\r\n";
    out += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    for (const std::string& header : reply.headers) out += header + "\r\n";
    out += "\r\n" + reply.body.substr(0, reply.cut_after);
    for (size_t done = 0; done < out.size();) {
      const ssize_t n = ::send(connection, out.data() + done, out.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::vector<std::thread> workers_;
  mutable std::mutex mutex_;
  std::vector<TestRequest> requests_;
};

}  // namespace deepinfer
