#include "grammar/json_schema/json_schema.h"

#include <utility>

#include "grammar/ir_analysis.h"
#include "grammar/json_schema/schema_lowering.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {

Result<JsonSchemaGrammar> ReadJsonSchema(std::string_view schema, const JsonSchemaOptions& options,
                                         Budget& budget) {
  DI_ASSIGN_OR_RETURN(JsonNode root, ParseJsonNode(schema, "the schema", budget.limits()));
  DI_RETURN_IF_ERROR(budget.Charge(schema.size() / 16));
  if (!root.is(JsonNode::Kind::kObject) && !root.is_boolean()) {
    return MakeError(ErrorCode::kInvalidArgument, "the schema is not an object, true or false");
  }
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<SchemaDocument> document,
                      SchemaDocument::Create(std::move(root), options.draft));
  SchemaSets sets(*document, options, budget);
  JsonSchemaGrammar grammar;
  SchemaLowering lowering(sets, grammar.ir, options, budget);
  const RuleId rule = grammar.ir.AddRule("root", lowering.Value(sets.root()));
  grammar.ir.SetRoot(rule);
  DI_RETURN_IF_ERROR(lowering.Finish());
  grammar.has_formats = sets.has_formats();
  DI_ASSIGN_OR_RETURN(const IrFacts facts, IrFacts::Of(grammar.ir, budget));
  grammar.allows_nothing = !facts.productive(grammar.ir.body(rule));
  return grammar;
}

Result<GrammarIr> JsonSchemaToIr(std::string_view schema, const JsonSchemaOptions& options,
                                 Budget& budget) {
  DI_ASSIGN_OR_RETURN(JsonSchemaGrammar grammar, ReadJsonSchema(schema, options, budget));
  if (grammar.allows_nothing) {
    return MakeError(ErrorCode::kInvalidArgument, "the schema has no instance at all");
  }
  return std::move(grammar.ir);
}

Result<bool> AllowsValue(const std::shared_ptr<const CompiledGrammar>& grammar,
                         const JsonNode& value) {
  Matcher matcher(grammar);
  const Status taken = matcher.AdvanceBytes(CanonicalJson(value));
  if (taken) return matcher.CanEnd();
  if (taken.error().code == ErrorCode::kInvalidArgument) return false;
  return tl::unexpected<Error>(taken.error());
}

Result<GrammarIr> AnyJsonObjectToIr(const JsonSchemaOptions& options, Budget& budget) {
  return JsonSchemaToIr(R"({"type": "object"})", options, budget);
}

}  // namespace deepinfer::grammar
