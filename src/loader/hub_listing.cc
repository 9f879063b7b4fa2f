#include "loader/hub_listing.h"

#include <nlohmann/json.hpp>
#include <set>

namespace deepinfer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFiles = 100000;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 46;
constexpr size_t kMaxPartBytes = 255;
constexpr size_t kMaxNameBytes = 1024;

// The name with control characters made visible.
std::string Shown(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 200)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string StringAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<HubFile> ParseFile(const Json& entry) {
  if (!entry.is_object()) {
    return MakeError(ErrorCode::kDataLoss, "an entry of \"siblings\" is not an object");
  }
  HubFile file;
  file.name = StringAt(entry, "rfilename");
  DI_RETURN_IF_ERROR(CheckHubFileName(file.name));
  const auto size = entry.find("size");
  if (size == entry.end() || !size->is_number_unsigned() || size->get<uint64_t>() > kMaxFileBytes) {
    return MakeError(ErrorCode::kDataLoss, "file {}: \"size\" is not a number from 0 to {}",
                     Shown(file.name), kMaxFileBytes);
  }
  file.size = size->get<uint64_t>();
  const auto large = entry.find("lfs");
  size_t digits = 40;
  if (large != entry.end() && large->is_object()) {
    file.digest_kind = DigestKind::kSha256;
    file.digest = StringAt(*large, "sha256");
    digits = 64;
  } else {
    file.digest_kind = DigestKind::kGitBlob;
    file.digest = StringAt(entry, "blobId");
  }
  if (!IsHexDigest(file.digest, digits)) {
    return MakeError(ErrorCode::kDataLoss, "file {}: {} \"{}\" is not {} hexadecimal digits",
                     Shown(file.name), digits == 64 ? "lfs.sha256" : "blobId", Shown(file.digest),
                     digits);
  }
  return file;
}

}  // namespace

bool IsHexDigest(std::string_view text, size_t digits) {
  if (text.size() != digits) return false;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

Status CheckHubFileName(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return MakeError(ErrorCode::kDataLoss, "the repository lists a file named \"{}\": {}",
                     Shown(name), why);
  };
  if (name.empty()) return refuse("the name is empty");
  if (name.size() > kMaxNameBytes) return refuse("the name is longer than 1024 bytes");
  if (name.front() == '/') return refuse("absolute paths are refused");
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return refuse("control characters are refused");
    if (c == '\\') return refuse("backslashes are refused");
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return refuse("empty parts are refused");
    if (part == "." || part == "..") return refuse("\".\" and \"..\" are refused");
    if (part.size() > kMaxPartBytes) return refuse("a part is longer than 255 bytes");
    begin = end + 1;
  }
  return {};
}

Result<HubListing> ParseHubListing(std::string_view json) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) {
    return MakeError(ErrorCode::kDataLoss, "the file listing is not a JSON object");
  }
  HubListing listing;
  listing.commit = StringAt(root, "sha");
  if (!IsHexDigest(listing.commit, 40)) {
    return MakeError(ErrorCode::kDataLoss,
                     "the file listing's \"sha\" is \"{}\", not 40 hexadecimal digits",
                     Shown(listing.commit));
  }
  const auto siblings = root.find("siblings");
  if (siblings == root.end() || !siblings->is_array() || siblings->empty() ||
      siblings->size() > kMaxFiles) {
    return MakeError(ErrorCode::kDataLoss,
                     "the file listing's \"siblings\" is not an array of 1 to {} files", kMaxFiles);
  }
  std::set<std::string> names;
  for (const Json& entry : *siblings) {
    DI_ASSIGN_OR_RETURN(HubFile file, ParseFile(entry));
    if (!names.insert(file.name).second) {
      return MakeError(ErrorCode::kDataLoss, "the file listing names {} twice", Shown(file.name));
    }
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace deepinfer
