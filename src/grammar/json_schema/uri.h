// References between schemas: RFC 3986 resolution and JSON pointers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::grammar {

// A reference against an absolute or empty base, RFC 3986 section 5.2. The result keeps the
// reference's fragment. An empty base leaves a relative reference relative.
std::string ResolveUri(std::string_view base, std::string_view reference);

struct SplitUri {
  std::string document;  // without '#'
  std::string fragment;  // decoded, without '#'
};
SplitUri SplitFragment(std::string_view uri);

// The unescaped tokens of a JSON pointer that is empty or begins with '/'.
std::vector<std::string> PointerTokens(std::string_view pointer);

}  // namespace deepinfer::grammar
