// Schemas against an independent validator.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "grammar/json_schema/json_schema.h"
#include "grammar/matcher.h"
#include "tests/property/grammar/json_schema/random_schema.h"

namespace deepinfer::grammar {
namespace {

using Json = nlohmann::json;
using CompiledPtr = std::shared_ptr<const CompiledGrammar>;

class Oracle {
 public:
  explicit Oracle(const Json& schema) : schema_(schema) {
    const valijson::adapters::NlohmannJsonAdapter adapter(schema_);
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(adapter, parsed_);
  }
  bool Accepts(const Json& value) const {
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(parsed_, valijson::adapters::NlohmannJsonAdapter(value), nullptr);
  }

 private:
  const Json schema_;
  valijson::Schema parsed_;
};

// Bytes and a few longer tokens, some across the parts of a JSON text.
const std::shared_ptr<const Vocabulary>& TestVocabulary() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    std::vector<std::string> tokens = {""};
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* word : {"{\"a\"", "\":", "\", \"", "\"}", "ab", "12", "]}", ",\"b\": ", "true",
                             "null", "0.5", "[[", "\xe2\x82", "\x82\xac"}) {
      tokens.emplace_back(word);
    }
    return *Vocabulary::Create(std::move(tokens), {0});
  }();
  return vocabulary;
}

// Null where the schema is refused or has no instance.
struct Compiled {
  CompiledPtr grammar;
  bool refused = false;
};

Compiled Compile(const Json& schema, JsonSchemaOptions options) {
  options.draft = SchemaDraft::k7;
  Budget budget{Limits()};
  Result<JsonSchemaGrammar> read = ReadJsonSchema(schema.dump(), options, budget);
  if (!read) return {nullptr, true};
  if (read->allows_nothing) return {};
  auto grammar = CompiledGrammar::Create(std::move(read->ir), TestVocabulary(), budget);
  if (!grammar) return {nullptr, true};
  return {*grammar, false};
}

// To the validator 2.0 is no integer, which it is since draft 6.
void MakeIntegers(Json& value) {
  if (value.is_number_float() && value == std::floor(value.get<double>())) {
    value = static_cast<int64_t>(value.get<double>());
  }
  if (value.is_structured()) {
    for (Json& part : value) MakeIntegers(part);
  }
}

bool HasLongNumber(std::string_view text) {
  size_t run = 0;
  for (const char c : text) {
    run = (c >= '0' && c <= '9') || c == 'e' || c == 'E' || c == '.' ? run + 1 : 0;
    if (run > 14) return true;
  }
  return false;
}

// A text that the masks lead to; empty if it did not end in time, or holds a number that the
// validator rounds. Later on it takes what closes.
std::string Walk(const CompiledPtr& grammar, uint32_t seed) {
  std::mt19937 random(seed);
  Matcher matcher(grammar);
  std::vector<uint32_t> mask(TestVocabulary()->mask_words());
  std::string text;
  for (int step = 0; step < 400; ++step) {
    RC_ASSERT(matcher.FillMask(mask).has_value());
    std::vector<int32_t> allowed, closing;
    for (int32_t token = 0; token < TestVocabulary()->size(); ++token) {
      if (((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) == 0) continue;
      allowed.push_back(token);
      const std::string_view bytes = TestVocabulary()->token_bytes(token);
      if (bytes.empty() || bytes == "\"" || bytes == "}" || bytes == "]" || bytes == "1") {
        closing.push_back(token);
      }
    }
    RC_ASSERT(!allowed.empty());
    const bool close = step > 30 && !closing.empty() && random() % 8 != 0;
    const std::vector<int32_t>& from = close ? closing : allowed;
    const int32_t token = from[random() % from.size()];
    RC_ASSERT(matcher.Advance(token).has_value());
    if (matcher.has_ended()) return HasLongNumber(text) ? "" : text;
    text += TestVocabulary()->token_bytes(token);
  }
  return "";
}

// An accepted schema has exactly the instances that a validator says it has.
RC_GTEST_PROP(JsonSchemaProperty, VerdictsAreTheValidators, (uint32_t seed)) {
  RandomSchema random(seed);
  const Json schema = random.DrawRoot();
  const Compiled compiled = Compile(schema, {});
  RC_CLASSIFY(compiled.refused, "refused");
  if (compiled.refused) return;
  const Oracle oracle(schema);
  for (int i = 0; i < 30; ++i) {
    const Json value = random.DrawValue(2);
    const auto node = ParseJsonNode(value.dump(), "the value", {});
    bool allowed = false;
    if (compiled.grammar != nullptr) allowed = *AllowsValue(compiled.grammar, *node);
    if (allowed != oracle.Accepts(value)) {
      RC_FAIL(schema.dump() + (allowed ? " allows " : " does not allow ") + value.dump());
    }
  }
}

// Whatever the masks lead to is an instance.
RC_GTEST_PROP(JsonSchemaProperty, WalksEndInInstances, (uint32_t seed)) {
  RandomSchema random(seed);
  const Json schema = random.DrawRoot();
  JsonSchemaOptions options;
  if (seed % 2 == 0) options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  if (seed % 3 == 0) options.key_order = JsonSchemaOptions::KeyOrder::kDeclared;
  const Compiled compiled = Compile(schema, options);
  if (compiled.grammar == nullptr) return;
  const Oracle oracle(schema);
  for (uint32_t walk = 0; walk < 3; ++walk) {
    const std::string text = Walk(compiled.grammar, seed + walk);
    RC_CLASSIFY(text.empty(), "unfinished");
    if (text.empty()) continue;
    Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    MakeIntegers(value);
    if (value.is_discarded()) RC_FAIL(schema.dump() + " wrote no JSON: " + text);
    if (!oracle.Accepts(value)) RC_FAIL(schema.dump() + " wrote " + text);
  }
}

}  // namespace
}  // namespace deepinfer::grammar
