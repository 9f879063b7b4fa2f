// What a hub says about the files of a repository. Everything in it is checked: it came from the
// network and becomes paths on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/digest.h"

namespace deepinfer {

struct HubFile {
  std::string name;  // a safe relative path with '/' between parts
  uint64_t size = 0;
  DigestKind digest_kind = DigestKind::kSha256;
  std::string digest;  // lower-case hexadecimal
};

struct HubListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;
};

// Parses the reply of api/models/ORG/NAME/revision/REVISION?blobs=true. kDataLoss for anything
// that is not as documented, or for a file name that is not safe.
Result<HubListing> ParseHubListing(std::string_view json);

// Refuses names that could leave the snapshot folder or confuse a terminal: absolute, empty, "." or
// ".." parts, backslashes, control characters, parts above 255 bytes.
Status CheckHubFileName(std::string_view name);

// True for `digits` lower-case hexadecimal digits.
bool IsHexDigest(std::string_view text, size_t digits);

}  // namespace deepinfer
