#include "grammar/json_schema/dsml.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "grammar/json_schema/schema_lowering.h"
#include "grammar/json_schema/words.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

constexpr std::string_view kMarkerText = "｜DSML｜";
constexpr uint32_t kBar = 0xff5c;  // the first character of kMarkerText

// Texts that do not hold `part`, over code points.
Result<Dfa> TextsWithout(std::string_view part, Budget& budget) {
  return Difference(StarDfa(CharSet::Any()), *RegexToDfa(part, RegexMatch::kSearch, {}, budget),
                    budget);
}

// Whether a name can stand between the quotes of a tag.
bool IsWritableName(std::string_view name) {
  return name.find_first_of("\"\n\r") == std::string_view::npos &&
         name.find(kMarkerText) == std::string_view::npos;
}

class DsmlBuilder {
 public:
  DsmlBuilder(const DsmlOptions& options, Budget& budget) : options_(options), budget_(budget) {
    ir_.SetRoot(ir_.AddRule("answer"));
  }

  Result<GrammarIr> Run(std::span<const DsmlTool> tools) {
    std::vector<NodeId> calls;
    for (const DsmlTool& tool : tools) {
      if (options_.choice == DsmlOptions::Choice::kNamed && tool.name != options_.name) continue;
      Result<NodeId> call = Call(tool);
      if (!call) return Forward(std::move(call).error(), "tool " + tool.name);
      calls.push_back(*call);
    }
    if (calls.empty()) {
      return MakeError(ErrorCode::kInvalidArgument, "no tool to call{}{}",
                       options_.name.empty() ? "" : " is named ", options_.name);
    }
    const NodeId call = ir_.Call(ir_.AddRule("call", ir_.Choice(calls)));
    const NodeId line_end = ir_.Literal("\n");
    const bool several = options_.parallel_calls && options_.choice != DsmlOptions::Choice::kNamed;
    const NodeId more =
        several ? ir_.Repeat(ir_.Sequence(std::array{line_end, call}), 0, kUnbounded) : ir_.Empty();
    const NodeId block =
        ir_.Sequence(std::array{Tag(" calls>\n"), call, more, line_end, ClosingTag(" calls>")});
    if (options_.choice != DsmlOptions::Choice::kAuto) {
      ir_.SetBody(ir_.root(), ir_.Sequence(std::array{ir_.Repeat(line_end, 0, 2), block}));
      return std::move(ir_);
    }
    DI_ASSIGN_OR_RETURN(const Dfa text, TextsWithout("<" + std::string(kMarkerText), budget_));
    DI_ASSIGN_OR_RETURN(Dfa bytes, EncodeUtf8(text, budget_));
    ir_.SetBody(ir_.root(),
                ir_.Sequence(std::array{ir_.Regular(std::move(bytes)), ir_.Optional(block)}));
    return std::move(ir_);
  }

 private:
  NodeId Tag(std::string_view rest) {
    return ir_.Literal("<" + options_.marker + std::string(rest));
  }
  NodeId ClosingTag(std::string_view rest) {
    return ir_.Literal("</" + options_.marker + std::string(rest));
  }

  Result<NodeId> Call(const DsmlTool& tool) {
    if (tool.name.empty() || !IsWritableName(tool.name)) {
      return MakeError(ErrorCode::kInvalidArgument, "its name cannot be written in DSML");
    }
    DI_ASSIGN_OR_RETURN(
        JsonNode root, ParseJsonNode(tool.parameters.empty() ? "{}" : tool.parameters, "its schema",
                                     budget_.limits()));
    if (!root.is(JsonNode::Kind::kObject) && !root.is_boolean()) {
      return MakeError(ErrorCode::kInvalidArgument, "its schema is not an object, true or false");
    }
    DI_ASSIGN_OR_RETURN(const std::unique_ptr<SchemaDocument> document,
                        SchemaDocument::Create(std::move(root), options_.schema.draft));
    SchemaSets sets(*document, options_.schema, budget_);
    SchemaLowering lowering(sets, ir_, options_.schema, budget_);
    lowering.EscapeAlways(kBar);
    DI_ASSIGN_OR_RETURN(const NodeId parameters, Parameters(sets, lowering));
    DI_RETURN_IF_ERROR(lowering.Finish());
    return ir_.Sequence(std::array{Tag(" invoke name=\"" + tool.name + "\">\n"), parameters,
                                   ir_.Literal("\n"), ClosingTag(" invoke>")});
  }

  Result<NodeId> Parameters(SchemaSets& sets, SchemaLowering& lowering) {
    SchemaLowering::MemberWriter writer;
    writer.repeats_unlisted = false;
    writer.separator = ir_.Literal("\n");
    writer.named = [&](const std::string& name, Term value) -> Result<NodeId> {
      if (!IsWritableName(name)) {
        return MakeError(ErrorCode::kInvalidArgument,
                         "the parameter \"{}\" cannot be written in DSML", CanonicalString(name));
      }
      return Parameter(ir_.Literal(name), value, lowering);
    };
    writer.unlisted = [&](Dfa names, Term value) -> Result<NodeId> {
      if (value == kEverything) return ir_.Nothing();
      // Without quotes, backslashes and controls a name is its own canonical spelling.
      const CharSet plain = CharSet{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {kBar, kBar}}.Complement();
      DI_ASSIGN_OR_RETURN(const Dfa writable, EncodeUtf8(StarDfa(plain), budget_));
      DI_ASSIGN_OR_RETURN(Dfa both, Intersect(names, writable, budget_));
      return Parameter(ir_.Regular(std::move(both)), value, lowering);
    };
    DI_ASSIGN_OR_RETURN(std::vector<Unordered> cases, lowering.Members(sets.root(), writer));
    std::vector<NodeId> choices;
    for (Unordered& members : cases) {
      const bool may_be_empty = members.min == 0;
      if (may_be_empty) choices.push_back(ir_.Empty());
      members.min = std::max(members.min, 1u);
      if (!members.members.empty()) choices.push_back(ir_.Any(std::move(members)));
    }
    return ir_.Choice(choices);
  }

  Result<NodeId> Parameter(NodeId name, Term value, SchemaLowering& lowering) {
    DI_ASSIGN_OR_RETURN(const NodeId text, lowering.RawStrings(value, [this](const Dfa& words) {
      return WithoutCloser(words);
    }));
    DI_ASSIGN_OR_RETURN(const NodeId json, lowering.ValueWithoutStrings(value));
    const NodeId as_text = ir_.Sequence(std::array{ir_.Literal("true\">"), text});
    const NodeId as_json = ir_.Sequence(std::array{ir_.Literal("false\">"), json});
    return ir_.Sequence(std::array{Tag(" parameter name=\""), name, ir_.Literal("\" string=\""),
                                   ir_.Choice(std::array{as_text, as_json}),
                                   ClosingTag(" parameter>")});
  }

  Result<Dfa> WithoutCloser(const Dfa& words) {
    if (without_closer_.empty()) {
      DI_ASSIGN_OR_RETURN(without_closer_,
                          TextsWithout("</" + std::string(kMarkerText) + " parameter>", budget_));
    }
    return Intersect(words, without_closer_, budget_);
  }

  const DsmlOptions& options_;
  Budget& budget_;
  GrammarIr ir_;
  Dfa without_closer_;
};

}  // namespace

Result<GrammarIr> DsmlToIr(std::span<const DsmlTool> tools, const DsmlOptions& options,
                           Budget& budget) {
  std::vector<std::string> names;
  for (const DsmlTool& tool : tools) names.push_back(tool.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return MakeError(ErrorCode::kInvalidArgument, "two tools are named {}", *twice);
  }
  return DsmlBuilder(options, budget).Run(tools);
}

}  // namespace deepinfer::grammar
