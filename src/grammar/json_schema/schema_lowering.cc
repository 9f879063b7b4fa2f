#include "grammar/json_schema/schema_lowering.h"

#include <array>

#include "grammar/json_schema/words.h"

namespace deepinfer::grammar {
namespace {

// Blanks of an indented line.
constexpr uint32_t kMaxIndent = 32;

NodeId Concatenated(GrammarIr& ir, std::initializer_list<NodeId> parts) {
  return ir.Sequence(std::vector<NodeId>(parts));
}

NodeId OneOfThem(GrammarIr& ir, std::initializer_list<NodeId> parts) {
  return ir.Choice(std::vector<NodeId>(parts));
}

}  // namespace

SchemaLowering::SchemaLowering(SchemaSets& sets, GrammarIr& ir, const JsonSchemaOptions& options,
                               Budget& budget)
    : sets_(sets), ir_(ir), options_(options), budget_(budget) {
  if (options.whitespace == JsonSchemaOptions::Whitespace::kCompact) {
    space_ = after_colon_ = ir_.Empty();
    comma_ = ir_.Literal(",");
    return;
  }
  after_colon_ = ir_.Optional(ir_.Literal(" "));
  const NodeId indent = ir_.Repeat(ir_.Chars({{' ', ' '}, {'\t', '\t'}}), 0, kMaxIndent);
  const NodeId line =
      Concatenated(ir_, {ir_.Optional(ir_.Literal("\r")), ir_.Literal("\n"), indent});
  space_ = OneOfThem(ir_, {ir_.Empty(), ir_.Literal(" "), line});
  comma_ = Concatenated(ir_, {ir_.Literal(","), space_});
}

NodeId SchemaLowering::Value(Term term) {
  if (term == kNothing) return ir_.Nothing();
  const auto known = rules_.find(term);
  if (known != rules_.end()) return ir_.Call(known->second);
  const RuleId rule = ir_.AddRule(fmt::format("value {}", TermTable::Index(term)));
  rules_.emplace(term, rule);
  pending_.push_back({term, rule});
  return ir_.Call(rule);
}

Status SchemaLowering::Finish() {
  while (!pending_.empty()) {
    const auto [term, rule] = pending_.back();
    pending_.pop_back();
    DI_RETURN_IF_ERROR(budget_.Charge(10, ir_.num_nodes()));
    DI_ASSIGN_OR_RETURN(const ValueSet* set, sets_.SetOf(term));
    DI_ASSIGN_OR_RETURN(const NodeId body, SetNode(*set));
    ir_.SetBody(rule, body);
  }
  return {};
}

NodeId SchemaLowering::Shared(const std::string& name, const std::function<NodeId()>& make) {
  const auto known = shared_.find(name);
  if (known != shared_.end()) return known->second;
  const NodeId node = ir_.Call(ir_.AddRule(name, make()));
  shared_.emplace(name, node);
  return node;
}

Result<NodeId> SchemaLowering::SetNode(const ValueSet& set) {
  std::vector<NodeId> choices;
  if (set.null) choices.push_back(ir_.Literal("null"));
  if (set.no) choices.push_back(ir_.Literal("false"));
  if (set.yes) choices.push_back(ir_.Literal("true"));
  if (!set.numbers.empty()) {
    DI_ASSIGN_OR_RETURN(const NodeId numbers, Number(set.numbers));
    choices.push_back(numbers);
  }
  if (!set.strings.empty()) {
    DI_ASSIGN_OR_RETURN(const NodeId strings, String(set.strings));
    choices.push_back(strings);
  }
  for (const ArrayCase& array : set.arrays) {
    DI_ASSIGN_OR_RETURN(const NodeId arrays, Array(array));
    choices.push_back(arrays);
  }
  for (const ObjectCase& object : set.objects) {
    DI_ASSIGN_OR_RETURN(std::vector<Unordered> cases, ObjectMembers(object, JsonWriter()));
    for (Unordered& members : cases) {
      const bool may_be_empty = members.min == 0;
      members.min = std::max(members.min, 1u);
      const NodeId content = members.members.empty() ? ir_.Nothing() : ir_.Any(std::move(members));
      choices.push_back(Bracketed("{", content, may_be_empty, "}"));
    }
  }
  return ir_.Choice(choices);
}

NodeId SchemaLowering::Bracketed(std::string_view open, NodeId content, bool may_be_empty,
                                 std::string_view close) {
  const NodeId filled =
      Concatenated(ir_, {ir_.Literal(open), space_, content, space_, ir_.Literal(close)});
  if (!may_be_empty) return filled;
  return OneOfThem(ir_, {ir_.Literal(std::string(open) + std::string(close)), filled});
}

// RFC 8259, with exponents of at most two digits: a longer one leaves the range of a double.
NodeId SchemaLowering::AnyNumber() {
  const NodeId digit = ir_.Chars({{'0', '9'}});
  const NodeId digits = ir_.Repeat(digit, 1, kUnbounded);
  const NodeId whole = OneOfThem(
      ir_, {ir_.Literal("0"),
            Concatenated(ir_, {ir_.Chars({{'1', '9'}}), ir_.Repeat(digit, 0, kUnbounded)})});
  const NodeId sign = ir_.Optional(ir_.Chars({{'+', '+'}, {'-', '-'}}));
  const NodeId exponent =
      Concatenated(ir_, {ir_.Chars({{'E', 'E'}, {'e', 'e'}}), sign, ir_.Repeat(digit, 1, 2)});
  return Concatenated(
      ir_, {ir_.Optional(ir_.Literal("-")), whole,
            ir_.Optional(Concatenated(ir_, {ir_.Literal("."), digits})), ir_.Optional(exponent)});
}

Result<NodeId> SchemaLowering::Number(const NumberSet& numbers) {
  if (numbers.is_all()) return Shared("number", [&] { return AnyNumber(); });
  if (numbers.is_integers()) {
    return Shared("integer", [&] { return ir_.Regular(numbers.words()); });
  }
  DI_ASSIGN_OR_RETURN(Dfa texts, NumberTexts(numbers, budget_));
  return ir_.Regular(std::move(texts));
}

// Characters with all their escapes; \u escapes of surrogates only in pairs.
NodeId SchemaLowering::AnyStringBody(uint32_t min, uint32_t max) {
  const NodeId character = Shared("character", [&] {
    const CharSet plain = CharSet{{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}.Complement();
    const NodeId hex = ir_.Chars({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
    const NodeId any_d = ir_.Chars({{'D', 'D'}, {'d', 'd'}});
    const NodeId high = ir_.Chars({{'8', '9'}, {'A', 'B'}, {'a', 'b'}});
    const NodeId low = ir_.Chars({{'C', 'F'}, {'c', 'f'}});
    const NodeId not_d = ir_.Chars({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
    const NodeId two = ir_.Repeat(hex, 2, 2);
    const NodeId one = Concatenated(
        ir_, {ir_.Literal("u"),
              OneOfThem(ir_, {Concatenated(ir_, {not_d, hex, two}),
                              Concatenated(ir_, {any_d, ir_.Chars({{'0', '7'}}), two})})});
    const NodeId pair = Concatenated(
        ir_, {ir_.Literal("u"), any_d, high, two, ir_.Literal("\\u"), any_d, low, two});
    const NodeId simple = ir_.Chars({{'"', '"'},
                                     {'/', '/'},
                                     {'\\', '\\'},
                                     {'b', 'b'},
                                     {'f', 'f'},
                                     {'n', 'n'},
                                     {'r', 'r'},
                                     {'t', 't'}});
    return OneOfThem(ir_,
                     {ir_.Chars(plain),
                      Concatenated(ir_, {ir_.Literal("\\"), OneOfThem(ir_, {simple, one, pair})})});
  });
  return ir_.Repeat(character, min, max);
}

Result<NodeId> SchemaLowering::String(const std::vector<StringCase>& cases) {
  const NodeId quote = ir_.Literal("\"");
  std::vector<NodeId> choices;
  for (const StringCase& string : cases) {
    if (string.words == nullptr) {
      choices.push_back(Shared(fmt::format("string {} {}", string.min, string.max), [&] {
        return Concatenated(ir_, {quote, AnyStringBody(string.min, string.max), quote});
      }));
      continue;
    }
    const auto known = string_nodes_.find(string.words);
    if (known != string_nodes_.end()) {
      choices.push_back(known->second);
      continue;
    }
    DI_ASSIGN_OR_RETURN(Dfa bytes, EncodeCanonicalString(*string.words, budget_));
    const NodeId text = Concatenated(ir_, {quote, ir_.Regular(std::move(bytes)), quote});
    const NodeId node = ir_.Call(ir_.AddRule("string of a language", text));
    string_nodes_.emplace(string.words, node);
    choices.push_back(node);
  }
  return ir_.Choice(choices);
}

}  // namespace deepinfer::grammar
