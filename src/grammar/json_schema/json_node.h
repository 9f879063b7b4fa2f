// JSON documents with exact numbers: schemas, their constants, and instances.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

struct JsonMember;

// A value. Addresses of nodes are identities: a parsed document is not changed.
struct JsonNode {
  enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;                 // kString: its UTF-8 contents; kNumber: see CanonicalNumber
  std::vector<JsonNode> items;      // kArray
  std::vector<JsonMember> members;  // kObject; keys are unique

  bool is(Kind k) const { return kind == k; }
  bool is_boolean() const { return kind == Kind::kTrue || kind == Kind::kFalse; }
  // The member of this name, or null: also where this is no object.
  const JsonNode* Find(std::string_view key) const;
};
struct JsonMember {
  std::string key;
  JsonNode value;
};

// RFC 8259 text of valid UTF-8 without half surrogate pairs; a key that stands twice is an error.
// kInvalidArgument names `what` and the place, kResourceExhausted the limit on size or nesting.
Result<JsonNode> ParseJsonNode(std::string_view text, std::string_view what, const Limits& limits);

// The one decimal spelling of a JSON number: no exponent, no zeros at either end, no "-0", no
// fraction of zero. kResourceExhausted where that takes more than 1,000 characters.
Result<std::string> CanonicalNumber(std::string_view text);

// The one spelling of a string inside its quotes: characters stand for themselves, but \" \\ \b \f
// \n \r \t and \u00xx for other controls.
void AppendCanonicalString(std::string_view text, std::string& out);
std::string CanonicalString(std::string_view text);

// The value without any whitespace, strings and numbers in their one spelling, members in order.
std::string CanonicalJson(const JsonNode& node);

// A key as one token of a JSON pointer.
std::string PointerToken(std::string_view key);

}  // namespace deepinfer::grammar
