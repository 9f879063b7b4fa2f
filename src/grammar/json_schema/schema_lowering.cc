#include "grammar/json_schema/schema_lowering.h"

#include <array>

#include "grammar/json_schema/formats.h"
#include "grammar/json_schema/words.h"
#include "grammar/regex.h"
#include "grammar/utf8.h"

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

// The language of a regular expression of ours, over bytes.
Dfa BytesOf(std::string_view pattern) {
  Budget budget{Limits()};
  return *EncodeUtf8(*RegexToDfa(pattern, RegexMatch::kWhole, {}, budget), budget);
}

// One character of a string with all its escapes, those of surrogates only in pairs. `escaped`,
// part of a class, is what must be escaped besides.
std::string CharacterPattern(const std::string& escaped) {
  return "[^\"\\\\\\u0000-\\u001f" + escaped +
         "]|\\\\(?:[\"\\\\/bfnrt]|u(?:[0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}|"
         "[Dd][89ABab][0-9A-Fa-f]{2}\\\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))";
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
  const NodeId blank = ir_.Chars({{' ', ' '}, {'\t', '\t'}});
  const RuleId indent_rule = ir_.AddRule("indent", ir_.Repeat(blank, 0, kMaxIndent));
  ir_.KeepShared(indent_rule);
  const NodeId indent = ir_.Call(indent_rule);
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

Result<NodeId> SchemaLowering::Number(const NumberSet& numbers) {
  if (numbers.is_all()) {
    // RFC 8259, with exponents of at most two digits: a longer one leaves the range of a double.
    static const Dfa all = BytesOf("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?");
    return Shared("number", [&] { return ir_.Regular(all); });
  }
  if (numbers.is_integers()) {
    return Shared("integer", [&] { return ir_.Regular(numbers.words()); });
  }
  DI_ASSIGN_OR_RETURN(Dfa texts, NumberTexts(numbers, budget_));
  return ir_.Regular(std::move(texts));
}

// All strings with so many characters, with all escapes.
NodeId SchemaLowering::AnyString(uint32_t min, uint32_t max) {
  if (min == 0 && max == kUnbounded) {
    static const Dfa all = BytesOf("\"(?:" + CharacterPattern("") + ")*\"");
    return Shared("string", [&] {
      return ir_.Regular(escaped_ ? BytesOf("\"(?:" + CharacterPattern(EscapedRange()) + ")*\"")
                                  : all);
    });
  }
  static const Dfa any = BytesOf(CharacterPattern(""));
  const NodeId character = Shared("character", [&] {
    return ir_.Regular(escaped_ ? BytesOf(CharacterPattern(EscapedRange())) : any);
  });
  const NodeId quote = ir_.Literal("\"");
  return Shared(fmt::format("string {} {}", min, max),
                [&] { return Concatenated(ir_, {quote, ir_.Repeat(character, min, max), quote}); });
}

std::string SchemaLowering::EscapedRange() const {
  return fmt::format("\\u{{{:x}}}", escaped_.value_or(0));
}

Result<Dfa> SchemaLowering::QuotedTexts(const std::shared_ptr<const Dfa>& words) {
  if (escaped_) {
    DI_ASSIGN_OR_RETURN(const Dfa bytes, EncodeCanonicalString(*words, *escaped_, budget_));
    return Quoted(bytes);
  }
  if (const auto known = FormatTexts(words.get()); known != nullptr) return *known;
  DI_ASSIGN_OR_RETURN(const Dfa bytes, EncodeCanonicalString(*words, budget_));
  return Quoted(bytes);
}

Result<NodeId> SchemaLowering::String(const std::vector<StringCase>& cases) {
  std::vector<NodeId> choices;
  for (const StringCase& string : cases) {
    if (string.words == nullptr) {
      choices.push_back(AnyString(string.min, string.max));
      continue;
    }
    const auto known = string_nodes_.find(string.words);
    if (known != string_nodes_.end()) {
      choices.push_back(known->second);
      continue;
    }
    DI_ASSIGN_OR_RETURN(Dfa texts, QuotedTexts(string.words));
    const NodeId node =
        ir_.Call(ir_.AddRule("string of a language", ir_.Regular(std::move(texts))));
    string_nodes_.emplace(string.words, node);
    choices.push_back(node);
  }
  return ir_.Choice(choices);
}

Result<NodeId> SchemaLowering::RawStrings(Term term, const Confine& confine) {
  DI_ASSIGN_OR_RETURN(const ValueSet* set, sets_.SetOf(term));
  std::vector<NodeId> choices;
  for (const StringCase& string : set->strings) {
    if (string.words == nullptr && (string.min > 0 || string.max != kUnbounded)) {
      CharSet left_out;
      if (escaped_) left_out = CharSet::Of(*escaped_);
      choices.push_back(ir_.Repeat(ir_.Chars(left_out.Complement()), string.min, string.max));
      continue;
    }
    const Dfa words = string.words != nullptr ? *string.words : StarDfa(CharSet::Any());
    DI_ASSIGN_OR_RETURN(const Dfa confined, confine(words));
    DI_ASSIGN_OR_RETURN(Dfa bytes, EncodeUtf8(confined, budget_));
    choices.push_back(ir_.Regular(std::move(bytes)));
  }
  if (choices.empty()) return ir_.Nothing();
  return ir_.Call(ir_.AddRule("raw text", ir_.Choice(choices)));
}

Result<NodeId> SchemaLowering::ValueWithoutStrings(Term term) {
  DI_ASSIGN_OR_RETURN(const ValueSet* whole, sets_.SetOf(term));
  ValueSet set = *whole;
  set.strings.clear();
  return SetNode(set);
}

std::string SchemaLowering::KeyText(std::string_view name) const {
  std::string text = CanonicalString(name);
  if (!escaped_) return text;
  std::string character;
  AppendUtf8(*escaped_, character);
  for (size_t at = text.find(character); at != std::string::npos; at = text.find(character, at)) {
    text.replace(at, character.size(), fmt::format("\\u{:04x}", *escaped_));
  }
  return text;
}

}  // namespace deepinfer::grammar
