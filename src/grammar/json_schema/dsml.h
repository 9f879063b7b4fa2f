// Tool calls in DSML (spec chat section 3): answers whose calls are of declared tools, with
// arguments that are instances of their schemas.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/json_schema/json_schema_options.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

struct DsmlTool {
  std::string name;        // as it is written; one line without quotes
  std::string parameters;  // a JSON Schema; empty: none
};

struct DsmlOptions {
  // kAuto: any text, and a block of calls may end it. kRequired: up to two line ends and a block.
  // kNamed: the same with one call of the tool `name`.
  enum class Choice { kAuto, kRequired, kNamed };
  Choice choice = Choice::kAuto;
  std::string name;
  bool parallel_calls = true;  // more than one call in a block; kNamed never has more
  // The bytes that the vocabulary gives to the control token of DSML (Vocabulary::MarkerByte), or
  // the token's own text where it is made of ordinary tokens.
  std::string marker = "｜DSML｜";
  JsonSchemaOptions schema;  // kFree whitespace also holds for the JSON of parameters
};

// The answer after the reasoning. Parameters that are strings are written as they are
// (string="true"), all others as JSON. Since the parser takes no name twice, which a grammar cannot
// prevent for names that it does not list, a call has at most one parameter that its schema does
// not list, and only where the schema says what such values must be. Errors name the tool: those of
// ReadJsonSchema, kInvalidArgument for a name that DSML cannot write, two tools of one name, a
// choice that is no tool, or no tool at all.
Result<GrammarIr> DsmlToIr(std::span<const DsmlTool> tools, const DsmlOptions& options,
                           Budget& budget);

}  // namespace deepinfer::grammar
