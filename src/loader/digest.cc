#include "loader/digest.h"

#include <openssl/evp.h>

#include <utility>

namespace deepinfer {

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

Result<Digest> Digest::Create(DigestKind kind, uint64_t size) {
  auto state = std::make_unique<State>();
  const EVP_MD* algorithm = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  if (state->context == nullptr || EVP_DigestInit_ex(state->context, algorithm, nullptr) != 1) {
    return MakeError(ErrorCode::kInternal, "OpenSSL offers no {}",
                     kind == DigestKind::kSha256 ? "SHA-256" : "SHA-1");
  }
  Digest digest(std::move(state));
  if (kind == DigestKind::kGitBlob) {
    std::string header = fmt::format("blob {}", size);
    header.push_back('\0');
    digest.Update(std::as_bytes(std::span(header)));
  }
  return digest;
}

void Digest::Update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Digest::Finish() {
  unsigned char value[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(state_->context, value, &length);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", value[i]);
  return text;
}

}  // namespace deepinfer
