// Small random schemas of draft 7, and values to judge by them. Left out is what valijson reads
// otherwise than the standard: strings that spell numbers are numbers to it,
// and propertyNames does not see every name.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace deepinfer::grammar {

class RandomSchema {
 public:
  using Json = nlohmann::json;
  explicit RandomSchema(uint32_t seed) : random_(seed) {}

  Json DrawRoot() {
    Json schema = DrawInPlace(3);
    if (!schema.is_object()) return schema;
    schema["definitions"] = {{"x", DrawInPlace(2)}, {"y", DrawInPlace(1)}};
    return schema;
  }

  Json DrawValue(int depth) {
    switch (Below(depth == 0 ? 6 : 9)) {
      case 0:
        return nullptr;
      case 1:
        return Below(2) == 0;
      case 2:
      case 3:
        return Number();
      case 4:
      case 5:
        return Pick({"", "a", "b", "ab", "abc", "b1", "\n\"", "x"});
      case 6: {
        Json array = Json::array();
        for (int n = Below(4); n > 0; --n) array.push_back(DrawValue(depth - 1));
        return array;
      }
      default: {
        Json object = Json::object();
        for (int n = Below(4); n > 0; --n) object[Name()] = DrawValue(depth - 1);
        return object;
      }
    }
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Chance(int n) { return Below(n) == 0; }
  Json Pick(std::vector<Json> values) { return values[random_() % values.size()]; }
  std::string Name() { return Pick({"a", "b", "c", "ab"}); }
  Json Number() { return Pick({-3, -1, 0, 1, 2, 3, 4, 6, 10, 0.5, 1.5, -0.25, 2.75}); }

  // References stand only where they apply to a part of the value: the validator follows every
  // other one for ever.
  Json Draw(int depth) {
    if (Chance(8)) return {{"$ref", Pick({"#/definitions/x", "#/definitions/y", "#"})}};
    return DrawInPlace(depth);
  }

  Json DrawInPlace(int depth) {
    if (Chance(12)) return Below(4) != 0;
    Json schema = Json::object();
    if (!Chance(3)) schema["type"] = DrawType();
    for (int n = 1 + Below(2); n > 0; --n) {
      switch (Below(depth == 0 ? 3 : 6)) {
        case 0:
          AddNumbers(schema);
          break;
        case 1:
          AddStrings(schema);
          break;
        case 2:
          AddConstants(schema);
          break;
        case 3:
          AddArrays(schema, depth - 1);
          break;
        case 4:
          AddObjects(schema, depth - 1);
          break;
        default:
          AddCombination(schema, depth - 1);
      }
    }
    return schema;
  }

  Json DrawType() {
    const auto one = [this] {
      return Pick({"null", "boolean", "integer", "number", "string", "array", "object", "object"});
    };
    if (!Chance(4)) return one();
    const Json first = one();
    const Json second = one();
    return first == second ? first : Json::array({first, second});
  }

  void AddNumbers(Json& schema) {
    if (Chance(2)) schema[Pick({"minimum", "exclusiveMinimum"})] = Number();
    if (Chance(2)) schema[Pick({"maximum", "exclusiveMaximum"})] = Number();
    if (Chance(5)) schema["multipleOf"] = Pick({0.5, 0.25});
    if (Chance(5)) {
      // The validator cuts fractions off before it divides by an integer.
      schema["type"] = "integer";
      schema["multipleOf"] = Pick({1, 2, 3, 10});
    }
  }

  void AddStrings(Json& schema) {
    if (Chance(3)) schema["minLength"] = Below(3);
    if (Chance(3)) schema["maxLength"] = Below(4);
    if (Chance(2)) schema["pattern"] = Pick({"^a", "b", "^[a-c]*$", "^(ab|b1)$", "[0-9]$", "a?"});
  }

  void AddConstants(Json& schema) {
    if (Chance(2)) {
      schema["const"] = DrawValue(1);
      return;
    }
    Json values = Json::array();
    for (int n = 1 + Below(4); n > 0; --n) values.push_back(DrawValue(1));
    schema["enum"] = values;
  }

  void AddArrays(Json& schema, int depth) {
    if (Chance(3)) {
      schema["items"] = Json::array({Draw(depth)});
      if (Chance(2)) schema["items"].push_back(Draw(depth));
      if (Chance(2)) schema["additionalItems"] = Draw(depth);
    } else if (Chance(2)) {
      schema["items"] = Draw(depth);
    }
    if (Chance(3)) schema["minItems"] = Below(3);
    if (Chance(3)) schema["maxItems"] = Below(4);
    if (Chance(5)) schema["contains"] = Draw(depth);
    if (Chance(8)) schema["uniqueItems"] = true;
  }

  void AddObjects(Json& schema, int depth) {
    for (int n = Below(4); n > 0; --n) schema["properties"][Name()] = Draw(depth);
    if (Chance(3)) schema["required"] = Json::array({Name()});
    if (Chance(3)) schema["additionalProperties"] = Chance(2) ? Json(false) : Draw(depth);
    if (Chance(5)) schema["patternProperties"][Pick({"^a", "b", "c$"})] = Draw(depth);
    if (Chance(6)) schema["minProperties"] = Below(3);
    if (Chance(6)) schema["maxProperties"] = Below(4);
    if (Chance(6)) {
      schema["dependencies"][Name()] = Chance(2) ? Json::array({Name()}) : DrawInPlace(depth);
    }
  }

  void AddCombination(Json& schema, int depth) {
    const auto branches = [&] {
      Json list = Json::array();
      for (int n = 1 + Below(3); n > 0; --n) list.push_back(DrawInPlace(depth));
      return list;
    };
    switch (Below(5)) {
      case 0:
        schema["allOf"] = branches();
        break;
      case 1:
        schema["anyOf"] = branches();
        break;
      case 2:
        schema["oneOf"] = branches();
        break;
      case 3:
        schema["not"] = DrawInPlace(depth);
        break;
      default:
        schema["if"] = DrawInPlace(depth);
        if (!Chance(3)) schema["then"] = DrawInPlace(depth);
        if (!Chance(3)) schema["else"] = DrawInPlace(depth);
        break;
    }
  }

  std::mt19937 random_;
};

}  // namespace deepinfer::grammar
