// Schemas compiled for a vocabulary of bytes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "grammar/json_schema/json_schema.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {

inline std::shared_ptr<const Vocabulary> SchemaVocabulary() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    std::vector<std::string> tokens = {""};
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return *Vocabulary::Create(std::move(tokens), {0});
  }();
  return vocabulary;
}

// Null where the schema has no instance.
inline Result<std::shared_ptr<const CompiledGrammar>> CompileSchema(
    std::string_view schema, const JsonSchemaOptions& options = {}, const Limits& limits = {}) {
  Budget budget(limits);
  DI_ASSIGN_OR_RETURN(JsonSchemaGrammar read, ReadJsonSchema(schema, options, budget));
  if (read.allows_nothing) return nullptr;
  return CompiledGrammar::Create(std::move(read.ir), SchemaVocabulary(), budget);
}

inline bool IsInstance(std::string_view schema, std::string_view value,
                       const JsonSchemaOptions& options = {}) {
  const auto grammar = CompileSchema(schema, options);
  if (!grammar) {
    ADD_FAILURE() << schema << ": " << grammar.error().message;
    return false;
  }
  const auto node = ParseJsonNode(value, "the value", {});
  if (!node) {
    ADD_FAILURE() << node.error().message;
    return false;
  }
  return *grammar != nullptr && *AllowsValue(*grammar, *node);
}

// Whether an output may be exactly this text.
inline bool WritesText(std::string_view schema, std::string_view text,
                       const JsonSchemaOptions& options = {}) {
  const auto grammar = CompileSchema(schema, options);
  if (!grammar || *grammar == nullptr) {
    ADD_FAILURE() << schema;
    return false;
  }
  Matcher matcher(*grammar);
  return matcher.AdvanceBytes(text).has_value() && matcher.CanEnd();
}

// The message that refuses the schema; empty where it is accepted.
inline std::string Refusal(std::string_view schema, const JsonSchemaOptions& options = {}) {
  const auto grammar = CompileSchema(schema, options);
  return grammar ? "" : grammar.error().message;
}

struct Judged {
  const char* schema;
  std::vector<const char*> instances;
  std::vector<const char*> others;
};

inline void CheckJudged(const std::vector<Judged>& cases, const JsonSchemaOptions& options = {}) {
  for (const Judged& judged : cases) {
    for (const char* value : judged.instances) {
      EXPECT_TRUE(IsInstance(judged.schema, value, options)) << judged.schema << " " << value;
    }
    for (const char* value : judged.others) {
      EXPECT_FALSE(IsInstance(judged.schema, value, options)) << judged.schema << " " << value;
    }
  }
}

}  // namespace deepinfer::grammar
