// Schemas as applications write them: records of orders, users, events and the like.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace deepinfer::grammar {

// Pure: the seed gives the schema.
class SchemaGenerator {
 public:
  explicit SchemaGenerator(uint32_t seed) : random_(seed) {}

  std::string Draw() {
    const int style = Below(10);
    std::string defs;
    if (style < 3) {
      defs = "\"$defs\":{";
      for (int i = 0; i < 3; ++i) {
        defs += fmt::format("{}\"Def{}\":{}", i > 0 ? "," : "", i, Object(1));
      }
      defs += "},";
      has_defs_ = true;
    }
    if (style == 9) return Tree();
    std::string schema = Object(1 + Below(3));
    return "{" + defs + schema.substr(1);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Chance(int n) { return Below(n) == 0; }

  std::string Name() {
    static const std::vector<std::string> words = {
        "id",       "name",    "title",   "status",  "created_at",  "email",   "address",
        "street",   "city",    "country", "amount",  "currency",    "items",   "quantity",
        "price",    "tags",    "owner",   "version", "description", "url",     "type",
        "priority", "enabled", "user",    "score",   "metadata",    "comment", "start_date",
        "end_date", "phone",   "color",   "size",    "weight",      "parent",  "children",
        "language", "reason",  "source",  "target",  "confidence"};
    std::string name = words[random_() % words.size()];
    if (Chance(4)) name += "_" + words[random_() % words.size()];
    return name;
  }

  std::string String() {
    switch (Below(12)) {
      case 0:
        return R"({"type":"string","format":"date-time"})";
      case 1:
        return R"({"type":"string","format":"email"})";
      case 2:
        return R"({"type":"string","format":"uri"})";
      case 3:
        return R"({"type":"string","format":"uuid"})";
      case 4:
        return R"({"type":"string","pattern":"^[A-Z]{3}-[0-9]{4,8}$"})";
      case 5:
        return R"({"type":"string","pattern":"^[a-z0-9]+(?:-[a-z0-9]+)*$","maxLength":60})";
      case 6:
        return fmt::format(R"({{"type":"string","minLength":1,"maxLength":{}}})", 10 + Below(500));
      case 7:
        return Enum();
      default:
        return R"({"type":"string","description":"Free text."})";
    }
  }

  std::string Enum() {
    std::string values;
    const int n = 2 + Below(Chance(10) ? 80 : 8);
    for (int i = 0; i < n; ++i) {
      values += fmt::format("{}\"{}{}\"", i > 0 ? "," : "", Name(),
                            Chance(2) ? fmt::format("-{}", i) : "");
    }
    return "{\"type\":\"string\",\"enum\":[" + values + "]}";
  }

  std::string Number() {
    switch (Below(6)) {
      case 0:
        return R"({"type":"integer","minimum":0})";
      case 1:
        return fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", Below(10),
                           20 + Below(5000));
      case 2:
        return R"({"type":"number","minimum":0,"maximum":1})";
      case 3:
        return R"({"type":"number","exclusiveMinimum":0,"multipleOf":0.01})";
      case 4:
        return R"({"type":"integer"})";
      default:
        return R"({"type":"number"})";
    }
  }

  std::string Value(int depth) {
    switch (Below(depth > 0 ? 12 : 7)) {
      case 0:
      case 1:
      case 2:
        return String();
      case 3:
      case 4:
        return Number();
      case 5:
        return R"({"type":"boolean"})";
      case 6:
        return fmt::format(R"({{"anyOf":[{},{{"type":"null"}}]}})",
                           Chance(2) ? String() : Number());
      case 7:
      case 8:
        return Array(depth - 1);
      case 9:
        return Union(depth - 1);
      default:
        if (has_defs_ && Chance(2)) return fmt::format("{{\"$ref\":\"#/$defs/Def{}\"}}", Below(3));
        return Object(depth - 1);
    }
  }

  std::string Array(int depth) {
    std::string bounds;
    if (Chance(3)) bounds += fmt::format(",\"minItems\":{}", 1 + Below(3));
    if (Chance(3)) bounds += fmt::format(",\"maxItems\":{}", 3 + Below(50));
    return "{\"type\":\"array\",\"items\":" + Value(depth) + bounds + "}";
  }

  // Told apart by a constant.
  std::string Union(int depth) {
    std::string branches;
    const int n = 2 + Below(3);
    for (int i = 0; i < n; ++i) {
      const std::string kind = fmt::format("\"kind\":{{\"const\":\"kind{}\"}},", i);
      branches += (i > 0 ? "," : "") + Object(depth, kind);
    }
    return fmt::format("{{\"{}\":[{}]}}", Chance(2) ? "oneOf" : "anyOf", branches);
  }

  std::string Object(int depth, const std::string& first = "") {
    std::string properties = first;
    std::string required = first.empty() ? "" : "\"kind\"";
    std::vector<std::string> seen = {"kind"};
    const int n = 2 + Below(Chance(12) ? 30 : 6);
    for (int i = 0; i < n; ++i) {
      const std::string name = Name();
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      properties += (properties.empty() || properties.back() == ',' ? "\"" : ",\"") + name +
                    "\":" + Value(depth);
      if (!Chance(3)) required += (required.empty() ? "\"" : ",\"") + name + "\"";
    }
    std::string more = ",\"additionalProperties\":false";
    if (Chance(3)) more = "";
    if (Chance(12)) more = ",\"additionalProperties\":" + String();
    if (Chance(20)) more += ",\"patternProperties\":{\"^x-\":{\"type\":\"string\"}}";
    return "{\"type\":\"object\",\"properties\":{" + properties + "},\"required\":[" + required +
           "]" + more + "}";
  }

  std::string Tree() {
    return R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"label":)" +
           String() + R"(,"value":)" + Number() +
           R"(,"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["label"],)" +
           R"("additionalProperties":false}}})";
  }

  std::mt19937 random_;
  bool has_defs_ = false;
};

}  // namespace deepinfer::grammar
