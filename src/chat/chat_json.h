// JSON values that keep key order and the digits of numbers, and their rendering in prompts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace deepinfer {

struct JsonValue {
  enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;              // kNumber: as written; kString: its UTF-8 contents
  std::vector<JsonValue> items;  // kArray
  std::vector<std::pair<std::string, JsonValue>> members;  // kObject; keys are unique

  // Out of line: `members` holds values of the type itself.
  JsonValue();
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;
  ~JsonValue();

  bool is(Kind k) const { return kind == k; }
  // The member of this name, or null: also where this is no object.
  const JsonValue* Find(std::string_view key) const;
};

// Arrays and objects inside each other beyond this depth are refused.
inline constexpr int kMaxJsonDepth = 256;

// RFC 8259, strictly: no NaN, no comments, no trailing comma, valid UTF-8. A key that stands twice
// keeps its first place and its last value. A \u escape of half a surrogate pair is refused, since
// no UTF-8 text can hold it. Errors name the byte offset.
Result<JsonValue> ParseJson(std::string_view text);

// Empty when `text` is a JSON text by the grammar of RFC 8259 (half surrogate pairs are part of
// it) that may stand inside `depth` arrays or objects, else what is wrong.
std::string CheckJson(std::string_view text, int depth = 0);

// The bytes of Python's json.dumps(value, ensure_ascii=False): ", " and ": ", the shortest form of
// non-integers that reads back ("1e2" becomes "100.0"), integers with all their digits. A number
// beyond the range of double stays as written.
std::string WriteJson(const JsonValue& value);

// Appends `text` as the inside of a JSON string, without the quotes. `text` must be valid UTF-8.
void AppendJsonEscaped(std::string_view text, std::string& out);

}  // namespace deepinfer
