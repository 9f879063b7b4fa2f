#include "grammar/lark.h"

#include <utility>
#include <vector>

#include "grammar/lark_common.h"
#include "grammar/regex.h"
#include "grammar/rule_source.h"
#include "grammar/unicode_property.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr std::string_view kIgnoreRule = "%ignore";

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Names of terminals are upper case; a leading underscore says nothing.
bool IsTerminalName(std::string_view name) {
  const size_t letter = name.find_first_not_of("_0123456789");
  return letter != name.npos && name[letter] >= 'A' && name[letter] <= 'Z';
}

class LarkParser {
 public:
  LarkParser(std::string_view text, Budget& budget)
      : source_("Lark grammar", text), budget_(budget), names_(ir_) {}

  Result<GrammarIr> Run() {
    DI_RETURN_IF_ERROR(source_.CheckText(budget_.limits()));
    SkipSpace(true);
    while (!source_.at_end()) {
      DI_RETURN_IF_ERROR(source_.peek() == '%' ? ParseDirective() : ParseDefinition());
      SkipSpace(true);
    }
    if (!names_.IsDefined("start")) {
      return MakeError(ErrorCode::kInvalidArgument, "Lark grammar: there is no rule named start");
    }
    DefineIgnore();
    DI_RETURN_IF_ERROR(names_.CheckAllDefined(source_));
    return std::move(ir_);
  }

 private:
  // Spaces and comments; line ends, too, if `lines`.
  void SkipSpace(bool lines) {
    while (!source_.at_end()) {
      const char c = source_.peek();
      if (source_.rest().starts_with("//") || c == '#') {
        while (!source_.at_end() && source_.peek() != '\n') ++source_.pos;
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
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

  Status ParseDirective() {
    const size_t start = source_.pos++;
    const std::string_view name = ReadName();
    SkipSpace(false);
    if (name == "ignore") {
      in_terminal_ = true;
      DI_ASSIGN_OR_RETURN(const NodeId ignored, ParseChoice());
      ignored_.push_back(ignored);
      return EndLine();
    }
    if (name == "import") return ParseImport(start);
    return source_.Fail(ErrorCode::kUnsupported, start, "directive %{} is not supported", name);
  }

  // %import common.NAME [-> ALIAS], %import common (A, B)
  Status ParseImport(size_t start) {
    if (ReadName() != "common") {
      return source_.Fail(ErrorCode::kUnsupported, start, "only %import common is supported");
    }
    SkipSpace(false);
    if (source_.Take(".")) {
      const std::string_view name = ReadName();
      std::string_view alias = name;
      SkipSpace(false);
      if (source_.Take("->")) {
        SkipSpace(false);
        alias = ReadName();
      }
      DI_RETURN_IF_ERROR(Import(start, name, alias));
      return EndLine();
    }
    if (!source_.Take("(")) {
      return source_.Fail(ErrorCode::kInvalidArgument, source_.pos, "expected . or (");
    }
    do {
      SkipSpace(true);
      const size_t at = source_.pos;
      const std::string_view name = ReadName();
      DI_RETURN_IF_ERROR(Import(at, name, name));
      SkipSpace(true);
    } while (source_.Take(","));
    if (!source_.Take(")")) {
      return source_.Fail(ErrorCode::kInvalidArgument, source_.pos, "expected )");
    }
    return EndLine();
  }

  Status Import(size_t at, std::string_view name, std::string_view alias) {
    const std::optional<std::string_view> regex = LarkCommonTerminal(name);
    if (!regex) {
      return source_.Fail(ErrorCode::kUnsupported, at, "common.{} is not known", name);
    }
    DI_ASSIGN_OR_RETURN(const NodeId body, AddRegex(ir_, *regex, {}, budget_));
    return Define(alias, at, body);
  }

  Status Define(std::string_view name, size_t at, NodeId body) {
    if (name.empty()) return source_.Fail(ErrorCode::kInvalidArgument, at, "a name is missing");
    if (names_.IsDefined(name)) {
      return source_.Fail(ErrorCode::kInvalidArgument, at, "{} is defined twice", name);
    }
    names_.Define(name, at, body);
    return {};
  }

  Status EndLine() {
    SkipSpace(false);
    if (source_.at_end() || source_.peek() == '\n') return {};
    return source_.Fail(ErrorCode::kInvalidArgument, source_.pos, "unexpected '{}'",
                        source_.peek());
  }

  Status ParseDefinition() {
    if (source_.peek() == '?' || source_.peek() == '!') ++source_.pos;  // shapes of Lark's trees
    const size_t start = source_.pos;
    const std::string_view name = ReadName();
    if (source_.peek() == '{') {
      return source_.Fail(ErrorCode::kUnsupported, start, "templates are not supported");
    }
    if (source_.Take(".")) DI_RETURN_IF_ERROR(source_.ReadNumber().map([](uint32_t) {}));
    SkipSpace(false);
    if (name.empty() || !source_.Take(":")) {
      return source_.Fail(ErrorCode::kInvalidArgument, start,
                          "a definition 'name: ...' must begin here");
    }
    in_terminal_ = IsTerminalName(name);
    DI_ASSIGN_OR_RETURN(const NodeId body, ParseChoice());
    DI_RETURN_IF_ERROR(Define(name, start, body));
    return EndLine();
  }

  Result<NodeId> ParseChoice() {
    if (++depth_ > budget_.limits().max_depth) {
      return source_.Fail(ErrorCode::kResourceExhausted, source_.pos,
                          "groups nest more than {} deep", budget_.limits().max_depth);
    }
    std::vector<NodeId> choices;
    SkipBeforeBar();
    source_.Take("|");  // Lark allows one before the first alternative
    do {
      DI_ASSIGN_OR_RETURN(const NodeId sequence, ParseSequence());
      choices.push_back(sequence);
      SkipBeforeBar();
    } while (source_.Take("|"));
    --depth_;
    return ir_.Choice(choices);
  }

  // A line that begins with | goes on with the alternatives.
  void SkipBeforeBar() {
    const size_t start = source_.pos;
    SkipSpace(true);
    if (source_.peek() != '|' && groups_ == 0) source_.pos = start;
  }

  Result<NodeId> ParseSequence() {
    std::vector<NodeId> parts;
    while (true) {
      SkipSpace(groups_ > 0);
      const char c = source_.peek();
      if (source_.at_end() || c == '\n' || c == '|' || c == ')' || c == ']') break;
      if (source_.Take("->")) {
        SkipSpace(false);
        ReadName();
        continue;
      }
      DI_RETURN_IF_ERROR(budget_.Charge(1));
      DI_ASSIGN_OR_RETURN(NodeId part, ParseItem());
      DI_ASSIGN_OR_RETURN(part, ParseOperator(part));
      parts.push_back(part);
    }
    return ir_.Sequence(parts);
  }

  Result<NodeId> ParseItem() {
    const size_t start = source_.pos;
    const char c = source_.peek();
    if (c == '(' || c == '[') {
      ++source_.pos;
      ++groups_;
      DI_ASSIGN_OR_RETURN(const NodeId inner, ParseChoice());
      SkipSpace(true);
      --groups_;
      if (!source_.Take(c == '(' ? ")" : "]")) {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this {} is not closed", c);
      }
      return c == '[' ? ir_.Optional(inner) : inner;
    }
    if (c == '"') return ParseStringOrRange();
    if (c == '/') return ParseRegexItem();
    if (c == '<') {
      return source_.Fail(ErrorCode::kUnsupported, start, "special tokens <...> are not supported");
    }
    const std::string_view name = ReadName();
    if (name.empty()) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "unexpected '{}'", c);
    }
    if (source_.peek() == '{') {
      return source_.Fail(ErrorCode::kUnsupported, start, "templates are not supported");
    }
    const NodeId use = names_.Use(name, start);
    return IsTerminalName(name) ? Token(use) : use;
  }

  // What stands for one token of Lark's lexer: ignored text may follow it.
  NodeId Token(NodeId node) {
    if (in_terminal_) return node;
    const NodeId parts[] = {node, names_.Use(kIgnoreRule, 0)};
    return ir_.Sequence(parts);
  }

  Result<std::string> ReadString() {
    const size_t start = source_.pos++;
    std::string bytes;
    while (!source_.Take("\"")) {
      if (source_.at_end() || source_.peek() == '\n') {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this string has no closing \"");
      }
      const size_t at = source_.pos;
      if (source_.Take("\\")) {
        const std::optional<uint32_t> escaped = source_.ReadEscape();
        if (!escaped) {
          return source_.Fail(ErrorCode::kInvalidArgument, at, "unknown escape '{}'",
                              source_.text().substr(at, 2));
        }
        AppendUtf8(*escaped, bytes);
        continue;
      }
      bytes.push_back(source_.text()[source_.pos++]);
    }
    return bytes;
  }

  Result<NodeId> ParseStringOrRange() {
    const size_t start = source_.pos;
    DI_ASSIGN_OR_RETURN(const std::string first, ReadString());
    if (source_.Take("..")) {
      if (source_.peek() != '"') {
        return source_.Fail(ErrorCode::kInvalidArgument, source_.pos, "expected a string");
      }
      DI_ASSIGN_OR_RETURN(const std::string last, ReadString());
      const Utf8Char low = first.empty() ? Utf8Char{0, 0} : DecodeUtf8(first, 0);
      const Utf8Char high = last.empty() ? Utf8Char{0, 0} : DecodeUtf8(last, 0);
      if (low.length == 0 || low.length != first.size() || high.length == 0 ||
          high.length != last.size() || low.code_point > high.code_point) {
        return source_.Fail(ErrorCode::kInvalidArgument, start,
                            "a range needs two characters in order");
      }
      return Token(ir_.Chars({{low.code_point, high.code_point}}));
    }
    if (!source_.Take("i")) return Token(ir_.Literal(first));
    std::vector<NodeId> chars;
    for (size_t at = 0; at < first.size();) {
      const Utf8Char c = DecodeUtf8(first, at);
      chars.push_back(ir_.Chars(AddCaseVariants(CharSet::Of(c.code_point))));
      at += c.length;
    }
    return Token(ir_.Sequence(chars));
  }

  Result<NodeId> ParseRegexItem() {
    const size_t start = source_.pos++;
    const size_t begin = source_.pos;
    bool in_class = false;
    while (source_.peek() != '/' || in_class) {
      const char c = source_.peek();
      if (source_.at_end() || c == '\n') {
        return source_.Fail(ErrorCode::kInvalidArgument, start, "this / has no closing /");
      }
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      source_.pos += c == '\\' ? 2 : 1;
    }
    const std::string_view pattern = source_.text().substr(begin, source_.pos - begin);
    ++source_.pos;
    RegexOptions options;
    for (; source_.peek() >= 'a' && source_.peek() <= 'z'; ++source_.pos) {
      const char flag = source_.peek();
      if (flag != 'i' && flag != 's' && flag != 'u') {
        return source_.Fail(ErrorCode::kUnsupported, source_.pos,
                            "flag {} of a regular expression is not supported", flag);
      }
      options.ignore_case |= flag == 'i';
      options.dot_all |= flag == 's';
    }
    const Result<NodeId> node = AddRegex(ir_, pattern, options, budget_);
    if (!node) return source_.Fail(node.error().code, start, "{}", node.error().message);
    return Token(*node);
  }

  Result<NodeId> ParseOperator(NodeId item) {
    SkipSpace(false);
    if (source_.Take("*")) return ir_.Repeat(item, 0, kUnbounded);
    if (source_.Take("+")) return ir_.Repeat(item, 1, kUnbounded);
    if (source_.Take("?")) return ir_.Optional(item);
    const size_t start = source_.pos;
    if (!source_.Take("~")) return item;
    SkipSpace(false);
    DI_ASSIGN_OR_RETURN(const uint32_t min, source_.ReadNumber());
    uint32_t max = min;
    SkipSpace(false);
    if (source_.Take("..")) {
      SkipSpace(false);
      DI_ASSIGN_OR_RETURN(max, source_.ReadNumber());
    }
    if (min > max) {
      return source_.Fail(ErrorCode::kInvalidArgument, start, "{} is more than {}", min, max);
    }
    return ir_.Repeat(item, min, max);
  }

  // Ignored text may stand before the first token and after every one.
  void DefineIgnore() {
    const NodeId any = ir_.Repeat(ir_.Choice(ignored_), 0, kUnbounded);
    names_.Define(kIgnoreRule, 0, ignored_.empty() ? ir_.Empty() : any);
    const NodeId parts[] = {names_.Use(kIgnoreRule, 0), names_.Use("start", 0)};
    ir_.SetRoot(ir_.AddRule("(text)", ir_.Sequence(parts)));
  }

  RuleSource source_;
  Budget& budget_;
  GrammarIr ir_;
  RuleNames names_;
  std::vector<NodeId> ignored_;
  bool in_terminal_ = false;  // the definition being read is a terminal's
  int groups_ = 0;            // open ( and [
  size_t depth_ = 0;
};

}  // namespace

Result<GrammarIr> LarkToIr(std::string_view text, Budget& budget) {
  return LarkParser(text, budget).Run();
}

}  // namespace deepinfer::grammar
