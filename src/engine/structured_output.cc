#include "engine/structured_output.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text.h"
#include "grammar/gbnf.h"
#include "grammar/lark.h"
#include "grammar/regex.h"

namespace deepinfer {
namespace {

using grammar::Budget;
using grammar::GrammarIr;

// Any JSON object, with the white space that people and models put into one.
constexpr std::string_view kJsonObject = R"gbnf(
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( member ( ws "," ws member )* ws )? "}"
member ::= string ws ":" ws value
array  ::= "[" ws ( value ( ws "," ws value )* ws )? "]"
string ::= "\"" char* "\""
char   ::= [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} )
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
ws     ::= [ \t\n]{0,20}
)gbnf";

// A front end, the names that requests know it by, and the text it reads where they give none.
struct Kind {
  std::vector<std::string_view> names;
  Result<GrammarIr> (*make_ir)(std::string_view text, Budget& budget);
  std::string_view text = {};
};

const Kind kKinds[] = {
    {{"json_object"}, grammar::GbnfToIr, kJsonObject},
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
  if (structured.schema.empty() == kind->text.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument, "so_args: schema_type {} goes {} a schema, which has {} bytes",
        structured.schema_type, kind->text.empty() ? "with" : "without", structured.schema.size());
  }
  std::string text(kind->text.empty() ? std::string_view(structured.schema) : kind->text);
  GrammarSource source{{std::string(kind->names.front()), {}, text}, {}};
  source.make_ir = [make_ir = kind->make_ir, text = std::move(text)](Budget& budget) {
    return make_ir(text, budget);
  };
  return source;
}

}  // namespace deepinfer
