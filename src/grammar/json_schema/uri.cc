#include "grammar/json_schema/uri.h"

#include <cstddef>

namespace deepinfer::grammar {
namespace {

struct Parts {
  std::string_view scheme;     // with ':'
  std::string_view authority;  // with "//"
  std::string_view path;
  std::string_view query;     // with '?'
  std::string_view fragment;  // with '#'
};

std::string_view TakeFrom(std::string_view& text, size_t position) {
  if (position == std::string_view::npos) return {};
  const std::string_view taken = text.substr(position);
  text.remove_suffix(taken.size());
  return taken;
}

Parts Split(std::string_view uri) {
  Parts parts;
  parts.fragment = TakeFrom(uri, uri.find('#'));
  parts.query = TakeFrom(uri, uri.find('?'));
  const size_t colon = uri.find(':');
  if (colon != std::string_view::npos && colon > 0 && uri.find('/') > colon) {
    parts.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    const size_t slash = uri.find('/', 2);
    parts.authority = uri.substr(0, slash);
    uri.remove_prefix(parts.authority.size());
  }
  parts.path = uri;
  return parts;
}

std::string WithoutDots(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const size_t slash = path.find('/', 1);
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(segment.size());
    const std::string_view name = segment.starts_with('/') ? segment.substr(1) : segment;
    if (name == ".." || name == ".") {
      if (name == "..")
        result.erase(result.rfind('/') == std::string::npos ? 0 : result.rfind('/'));
      if (path.empty() && segment.starts_with('/')) result += '/';
    } else {
      result += segment;
    }
  }
  return result;
}

std::string Join(const Parts& a, std::string_view path, std::string_view query,
                 std::string_view fragment) {
  std::string result(a.scheme);
  result.append(a.authority).append(path).append(query).append(fragment);
  return result;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string PercentDecode(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      result += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string ResolveUri(std::string_view base, std::string_view reference) {
  const Parts b = Split(base);
  const Parts r = Split(reference);
  if (!r.scheme.empty()) return std::string(reference);
  if (!r.authority.empty()) {
    Parts parts = r;
    parts.scheme = b.scheme;
    return Join(parts, WithoutDots(r.path), r.query, r.fragment);
  }
  if (r.path.empty()) return Join(b, b.path, r.query.empty() ? b.query : r.query, r.fragment);
  if (r.path.starts_with('/')) return Join(b, WithoutDots(r.path), r.query, r.fragment);
  std::string merged(b.path.substr(0, b.path.rfind('/') + 1));
  if (merged.empty() && !b.authority.empty()) merged = "/";
  merged += r.path;
  return Join(b, WithoutDots(merged), r.query, r.fragment);
}

SplitUri SplitFragment(std::string_view uri) {
  const size_t hash = uri.find('#');
  if (hash == std::string_view::npos) return {std::string(uri), ""};
  return {std::string(uri.substr(0, hash)), PercentDecode(uri.substr(hash + 1))};
}

std::vector<std::string> PointerTokens(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size() &&
               (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      tokens.back() += pointer[++i] == '0' ? '~' : '/';
    } else {
      tokens.back() += pointer[i];
    }
  }
  return tokens;
}

}  // namespace deepinfer::grammar
