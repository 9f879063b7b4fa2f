// The golden cases of tests/golden/data/chat, one JSON object a line.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "chat/chat_json.h"
#include "gtest/gtest.h"

namespace deepinfer {

inline std::string GoldenChatPath(const std::string& file) {
  return std::string(DEEPINFER_SOURCE_DIR) + "/tests/golden/data/chat/" + file;
}

inline std::vector<JsonValue> ReadGoldenCases(const std::string& file) {
  std::ifstream in(GoldenChatPath(file));
  std::vector<JsonValue> cases;
  for (std::string line; std::getline(in, line);) {
    auto value = ParseJson(line);
    if (!value) {
      ADD_FAILURE() << file << ": " << value.error().message;
      break;
    }
    cases.push_back(std::move(*value));
  }
  return cases;
}

// A string member, empty where it is absent or null.
inline std::string Member(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value == nullptr ? "" : value->text;
}

}  // namespace deepinfer
