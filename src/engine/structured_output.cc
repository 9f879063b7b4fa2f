#include "engine/structured_output.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema/json_schema.h"
#include "grammar/lark.h"
#include "grammar/regex.h"

namespace deepinfer {
namespace {

using grammar::Budget;
using grammar::GrammarIr;

// A front end and the names that requests know it by.
struct Kind {
  std::vector<std::string_view> names;
  Result<GrammarIr> (*make_ir)(std::string_view text, Budget& budget);
  bool has_schema = true;
};

const Kind kKinds[] = {
    {{"json_schema", "json"},
     [](std::string_view text, Budget& budget) {
       return grammar::JsonSchemaToIr(text, {}, budget);
     }},
    {{"json_object"},
     [](std::string_view, Budget& budget) { return grammar::AnyJsonObjectToIr({}, budget); },
     false},
    {{"regex"},
     [](std::string_view text, Budget& budget) { return grammar::RegexToIr(text, {}, budget); }},
    {{"ebnf", "grammar", "gbnf"}, grammar::GbnfToIr},
    {{"lark"}, grammar::LarkToIr},
};

std::string AllNames() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    names.insert(names.end(), kind.names.begin(), kind.names.end());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<GrammarSource> MakeGrammarSource(const StructuredOutput& structured) {
  const auto* kind = std::ranges::find_if(kKinds, [&](const Kind& k) {
    return std::ranges::find(k.names, structured.schema_type) != k.names.end();
  });
  if (kind == std::end(kKinds)) {
    return MakeError(ErrorCode::kInvalidArgument, "so_args: schema_type \"{}\" is none of {}",
                     structured.schema_type, AllNames());
  }
  DI_RETURN_IF_ERROR(RequireUtf8(structured.schema, "so_args: the schema"));
  if (structured.schema.empty() == kind->has_schema) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "so_args: schema_type {} goes {} a schema; this one has {} bytes",
                     structured.schema_type, kind->has_schema ? "with" : "without",
                     structured.schema.size());
  }
  GrammarSource source{{std::string(kind->names.front()), {}, structured.schema}, {}};
  source.make_ir = [make_ir = kind->make_ir, text = structured.schema](Budget& budget) {
    return make_ir(text, budget);
  };
  return source;
}

}  // namespace deepinfer
