// JSON Schema, drafts 4 to 2020-12. docs/grammar.md lists what is supported.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "grammar/compiled_grammar.h"
#include "grammar/ir.h"
#include "grammar/json_schema/json_node.h"
#include "grammar/json_schema/json_schema_options.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

struct JsonSchemaGrammar {
  GrammarIr ir;
  bool has_formats = false;     // some string was confined to its "format"
  bool allows_nothing = false;  // no value is an instance; the ir does not compile
};

// The JSON texts of the schema's instances; exactly its instances have such a text, and
// CanonicalJson of an instance is one of them (with JsonSchemaOptions::KeyOrder::kAny). Errors name
// the keyword and its JSON pointer: kUnsupported for what cannot be guaranteed, kInvalidArgument
// for what is no schema, kResourceExhausted beyond the budget.
Result<JsonSchemaGrammar> ReadJsonSchema(std::string_view schema, const JsonSchemaOptions& options,
                                         Budget& budget);

// The same for a schema that has instances; kInvalidArgument if it has none.
Result<GrammarIr> JsonSchemaToIr(std::string_view schema, const JsonSchemaOptions& options,
                                 Budget& budget);

// Whether the value is in a grammar of JSON texts: by the one text that CanonicalJson gives it.
// kResourceExhausted where the grammar is too ambiguous for it.
Result<bool> AllowsValue(const std::shared_ptr<const CompiledGrammar>& grammar,
                         const JsonNode& value);

// Any object.
Result<GrammarIr> AnyJsonObjectToIr(const JsonSchemaOptions& options, Budget& budget);

}  // namespace deepinfer::grammar
