#include "grammar/gbnf.h"

#include <utility>
#include <vector>

#include "grammar/rule_source.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, Budget& budget)
      : source_("GBNF", text), budget_(budget), names_(ir_) {}

  Result<GrammarIr> Run() {
    DI_RETURN_IF_ERROR(source_.CheckText(budget_.limits()));
    SkipSpace();
    while (!source_.at_end()) DI_RETURN_IF_ERROR(ParseRule());
    if (!names_.IsDefined("root")) {
      return MakeError(ErrorCode::kInvalidArgument, "GBNF: there is no rule named root");
    }
    DI_RETURN_IF_ERROR(names_.CheckAllDefined(source_));
    ir_.SetRoot(names_.Rule("root", 0));
    return std::move(ir_);
  }

 private:
  void SkipSpace() {
    while (!source_.at_end()) {
      const char c = source_.peek();
      if (c == '#') {
        while (!source_.at_end() && source_.peek() != '\n') ++source_.pos;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++source_.pos;
      } else {
        return;
      }
    }
  }

  std::string_view ReadName() {
    const size_t start = source_.pos;
    while (IsNameChar(source_.peek())) ++source_.pos;
    return source_.text().substr(start, source_.pos - start);
  }

  // Whether "name ::=" stands here: then the rule before it is over.
  bool AtRuleStart() {
    const size_t start = source_.pos;
    if (ReadName().empty()) return false;
    SkipSpace();
    const bool starts = source_.rest().starts_with("::=");
    source_.pos = start;
    return starts;
  }

  Status ParseRule() {
    const size_t start = source_.pos;
    const std::string_view name = ReadName();
    SkipSpace();
    if (name.empty() || !source_.Take("::=")) {
      return source_.Fail(ErrorCode::kInvalidArgument, start,
                          "a rule 'name ::= ...' must begin here");
    }
    if (names_.IsDefined(name)) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "rule {} is defined twice", name);
    }
    SkipSpace();
    DI_ASSIGN_OR_RETURN(const NodeId body, ParseChoice());
    if (!source_.at_end() && !AtRuleStart()) {
      return source_.Fail(ErrorCode::kInvalidArgument, source_.pos, "unexpected '{}'",
                          source_.peek());
    }
    names_.Define(name, start, body);
    return {};
  }

  Result<NodeId> ParseChoice() {
    if (++depth_ > budget_.limits().max_depth) {
      return source_.Fail(ErrorCode::kResourceExhausted, source_.pos,
                          "groups nest more than {} deep", budget_.limits().max_depth);
    }
    std::vector<NodeId> choices;
    do {
      SkipSpace();
      DI_ASSIGN_OR_RETURN(const NodeId sequence, ParseSequence());
      choices.push_back(sequence);
    } while (source_.Take("|"));
    --depth_;
    return ir_.Choice(choices);
  }

  Result<NodeId> ParseSequence() {
    std::vector<NodeId> parts;
    while (!source_.at_end() && source_.peek() != '|' && source_.peek() != ')' && !AtRuleStart()) {
      DI_RETURN_IF_ERROR(budget_.Charge(1));
      DI_ASSIGN_OR_RETURN(NodeId part, ParseItem());
      SkipSpace();
      DI_ASSIGN_OR_RETURN(part, ParseRepetitions(part));
      parts.push_back(part);
    }
    return ir_.Sequence(parts);
  }

  Result<NodeId> ParseItem() {
    const size_t start = source_.pos;
    const char c = source_.peek();
    if (c == '"') return ParseLiteral();
    if (c == '[') return ParseClass();
    if (c == '(') {
      ++source_.pos;
      DI_ASSIGN_OR_RETURN(const NodeId inner, ParseChoice());
      if (!source_.Take(")")) {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this ( has no )");
      }
      return inner;
    }
    if (source_.Take(".")) return ir_.Chars(CharSet::Any());
    if (c == '<' || c == '!') {
      return source_.Fail(ErrorCode::kUnsupported, start,
                          "token references <...> are not supported");
    }
    const std::string_view name = ReadName();
    if (name.empty()) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "unexpected '{}'", c);
    }
    return names_.Use(name, start);
  }

  // The character at the position of a literal or class.
  Result<uint32_t> ReadChar() {
    const size_t start = source_.pos;
    if (source_.Take("\\")) {
      const std::optional<uint32_t> escaped = source_.ReadEscape();
      if (!escaped) {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "unknown escape '{}'",
                            source_.text().substr(start, 2));
      }
      return *escaped;
    }
    const Utf8Char c = DecodeUtf8(source_.text(), start);
    source_.pos += c.length;
    return c.code_point;
  }

  Result<NodeId> ParseLiteral() {
    const size_t start = source_.pos++;
    std::string bytes;
    while (!source_.Take("\"")) {
      if (source_.at_end() || source_.peek() == '\n') {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this string has no closing \"");
      }
      DI_ASSIGN_OR_RETURN(const uint32_t c, ReadChar());
      AppendUtf8(c, bytes);
    }
    return ir_.Literal(bytes);
  }

  Result<NodeId> ParseClass() {
    const size_t start = source_.pos++;
    const bool negated = source_.Take("^");
    CharSet set;
    while (!source_.Take("]")) {
      if (source_.at_end() || source_.peek() == '\n') {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this [ has no ]");
      }
      const size_t member = source_.pos;
      DI_ASSIGN_OR_RETURN(const uint32_t first, ReadChar());
      uint32_t last = first;
      if (source_.peek() == '-' && source_.peek(1) != ']') {
        ++source_.pos;
        if (source_.at_end()) continue;
        DI_ASSIGN_OR_RETURN(last, ReadChar());
      }
      if (last < first) {
        return source_.Fail(ErrorCode::kInvalidArgument, member, "this range is out of order");
      }
      set.Add(first, last);
    }
    return ir_.Chars(negated ? set.Complement() : std::move(set));
  }

  Result<NodeId> ParseRepetitions(NodeId item) {
    while (true) {
      const size_t start = source_.pos;
      uint32_t min = 0;
      uint32_t max = kUnbounded;
      if (source_.Take("*")) {
      } else if (source_.Take("+")) {
        min = 1;
      } else if (source_.Take("?")) {
        max = 1;
      } else if (source_.Take("{")) {
        DI_RETURN_IF_ERROR(ParseCounts(start, min, max));
      } else {
        return item;
      }
      item = ir_.Repeat(item, min, max);
      SkipSpace();
    }
  }

  Status ParseCounts(size_t start, uint32_t& min, uint32_t& max) {
    SkipSpace();
    if (source_.peek() != ',') {
      DI_ASSIGN_OR_RETURN(min, source_.ReadNumber());
    }
    max = min;
    SkipSpace();
    if (source_.Take(",")) {
      SkipSpace();
      max = kUnbounded;
      if (source_.peek() != '}') {
        DI_ASSIGN_OR_RETURN(max, source_.ReadNumber());
      }
      SkipSpace();
    }
    if (!source_.Take("}")) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "this {{ has no }}");
    }
    if (min > max) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "{} is more than {}", min, max);
    }
    return {};
  }

  RuleSource source_;
  Budget& budget_;
  GrammarIr ir_;
  RuleNames names_;
  size_t depth_ = 0;
};

}  // namespace

Result<GrammarIr> GbnfToIr(std::string_view text, Budget& budget) {
  return GbnfParser(text, budget).Run();
}

}  // namespace deepinfer::grammar
