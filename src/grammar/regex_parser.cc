#include <fmt/format.h>

#include <string>
#include <utility>

#include "grammar/regex_escape.h"
#include "grammar/regex_tree.h"
#include "grammar/source_position.h"
#include "grammar/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr uint64_t kMaxCount = 1'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class RegexParser {
 public:
  RegexParser(std::string_view pattern, const RegexOptions& options, const Limits& limits)
      : options_(options), limits_(limits), reader_{pattern, 0} {}

  Result<RegexTree> Run() {
    if (reader_.text.size() > limits_.max_text_bytes) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "the regular expression has {} bytes, more than {}", reader_.text.size(),
                       limits_.max_text_bytes);
    }
    for (size_t pos = 0; pos < reader_.text.size();) {
      const uint32_t length = DecodeUtf8(reader_.text, pos).length;
      if (length == 0) {
        return reader_.Fail(ErrorCode::kInvalidArgument, pos, "it is not valid UTF-8");
      }
      pos += length;
    }
    DI_ASSIGN_OR_RETURN(tree_.root, ParseChoice());
    if (!reader_.at_end()) {
      return reader_.Fail(ErrorCode::kInvalidArgument, reader_.pos, "unmatched )");
    }
    return std::move(tree_);
  }

 private:
  uint32_t Append(RegexNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tree_.nodes.size()) - 1;
  }

  uint32_t AppendList(RegexKind kind, std::vector<uint32_t> children) {
    if (children.size() == 1) return children[0];
    RegexNode node;
    node.kind = children.empty() ? RegexKind::kEmpty : kind;
    node.children = std::move(children);
    return Append(std::move(node));
  }

  uint32_t AppendSet(CharSet set) {
    RegexNode node;
    node.kind = RegexKind::kSet;
    node.set = static_cast<uint32_t>(tree_.sets.size());
    tree_.sets.push_back(std::move(set));
    return Append(std::move(node));
  }

  uint32_t AppendFolded(CharSet set) {
    return AppendSet(options_.ignore_case ? AddCaseVariants(set) : std::move(set));
  }

  uint32_t AppendAssertion(RegexAssertion assertion) {
    RegexNode node;
    node.kind = RegexKind::kAssertion;
    node.assertion = assertion;
    tree_.has_assertions = true;
    return Append(std::move(node));
  }

  Result<uint32_t> ParseChoice() {
    if (++depth_ > limits_.max_depth) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "the regular expression nests groups more than {} deep", limits_.max_depth);
    }
    std::vector<uint32_t> choices;
    while (true) {
      DI_ASSIGN_OR_RETURN(const uint32_t sequence, ParseSequence());
      choices.push_back(sequence);
      if (!reader_.Take('|')) break;
    }
    --depth_;
    return AppendList(RegexKind::kChoice, std::move(choices));
  }

  Result<uint32_t> ParseSequence() {
    std::vector<uint32_t> parts;
    while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')') {
      const size_t start = reader_.pos;
      if (tree_.nodes.size() > 2 * limits_.max_states) {
        return MakeError(ErrorCode::kResourceExhausted,
                         "the regular expression has more than {} parts", 2 * limits_.max_states);
      }
      DI_ASSIGN_OR_RETURN(uint32_t part, ParseAtom());
      DI_ASSIGN_OR_RETURN(part, ParseQuantifiers(part, start));
      parts.push_back(part);
    }
    return AppendList(RegexKind::kSequence, std::move(parts));
  }

  Result<uint32_t> ParseAtom() {
    const size_t start = reader_.pos;
    switch (reader_.peek()) {
      case '(':
        return ParseGroup();
      case '[': {
        DI_ASSIGN_OR_RETURN(CharSet set, ParseRegexClass(reader_, options_.ignore_case));
        return AppendSet(std::move(set));
      }
      case '.':
        ++reader_.pos;
        return AppendSet(options_.dot_all ? CharSet::Any() : RegexClass('n').Complement());
      case '^':
        ++reader_.pos;
        return AppendAssertion(RegexAssertion::kTextStart);
      case '$':
        ++reader_.pos;
        return AppendAssertion(RegexAssertion::kTextEnd);
      case '*':
      case '+':
      case '?':
        return reader_.Fail(ErrorCode::kInvalidArgument, start, "nothing to repeat");
      case '\\':
        return ParseEscapedAtom();
      default: {
        uint32_t min, max;
        if (reader_.peek() == '{' && ReadCounts(min, max)) {
          return reader_.Fail(ErrorCode::kInvalidArgument, start, "nothing to repeat");
        }
        const Utf8Char c = DecodeUtf8(reader_.text, reader_.pos);
        reader_.pos += c.length;
        return AppendFolded(CharSet::Of(c.code_point));
      }
    }
  }

  Result<uint32_t> ParseEscapedAtom() {
    const size_t start = reader_.pos;
    const char letter = reader_.peek(1);
    constexpr std::string_view kAssertions = "AzbB";
    constexpr RegexAssertion kMeanings[] = {RegexAssertion::kTextStart, RegexAssertion::kTextEnd,
                                            RegexAssertion::kWordBoundary,
                                            RegexAssertion::kNotWordBoundary};
    const size_t index = letter == '\0' ? kAssertions.npos : kAssertions.find(letter);
    if (index != kAssertions.npos) {
      reader_.pos += 2;
      return AppendAssertion(kMeanings[index]);
    }
    if ((letter >= '1' && letter <= '9') || letter == 'k') {
      return reader_.Fail(ErrorCode::kUnsupported, start,
                          fmt::format("back-reference \\{} is not supported", letter));
    }
    DI_ASSIGN_OR_RETURN(RegexEscape escape, ParseRegexEscape(reader_));
    return escape.code_point ? AppendFolded(std::move(escape.set))
                             : AppendSet(std::move(escape.set));
  }

  Result<uint32_t> ParseGroup() {
    const size_t start = reader_.pos++;
    if (reader_.Take('?')) DI_RETURN_IF_ERROR(ParseGroupKind(start));
    DI_ASSIGN_OR_RETURN(const uint32_t inner, ParseChoice());
    if (!reader_.Take(')')) {
      return reader_.Fail(ErrorCode::kInvalidArgument, start, "this ( has no )");
    }
    return inner;
  }

  // After "(?".
  Status ParseGroupKind(size_t start) {
    if (reader_.Take(':')) return {};
    struct Refused {
      std::string_view opener;
      std::string_view name;
    };
    constexpr Refused kRefused[] = {{"=", "look-ahead (?=...)"},
                                    {"!", "negative look-ahead (?!...)"},
                                    {"<=", "look-behind (?<=...)"},
                                    {"<!", "negative look-behind (?<!...)"},
                                    {">", "atomic group (?>...)"},
                                    {"P=", "back-reference (?P=...)"},
                                    {"P>", "recursion (?P>...)"},
                                    {"R", "recursion (?R)"},
                                    {"(", "conditional group (?(...)...)"},
                                    {"#", "comment (?#...)"}};
    const std::string_view rest = reader_.text.substr(reader_.pos);
    for (const Refused& refused : kRefused) {
      if (!rest.starts_with(refused.opener)) continue;
      return reader_.Fail(ErrorCode::kUnsupported, start,
                          fmt::format("{} is not supported", refused.name));
    }
    const size_t name = rest.starts_with("P<") ? 2 : rest.starts_with("<") ? 1 : 0;
    if (name == 0) {
      return reader_.Fail(ErrorCode::kUnsupported, start,
                          "inline flags and other (?...) groups are not supported");
    }
    const size_t end = rest.find('>');
    if (end == rest.npos || end == name) {
      return reader_.Fail(ErrorCode::kInvalidArgument, start, "this group has no name");
    }
    reader_.pos += end + 1;
    return {};
  }

  Result<uint32_t> ParseQuantifiers(uint32_t atom, size_t start) {
    uint32_t min = 0;
    uint32_t max = kUnbounded;
    const size_t at = reader_.pos;
    if (reader_.Take('*')) {
    } else if (reader_.Take('+')) {
      min = 1;
    } else if (reader_.Take('?')) {
      max = 1;
    } else if (reader_.peek() != '{' || !ReadCounts(min, max)) {
      return atom;
    }
    const bool group = reader_.text[start] == '(';
    if (tree_.nodes[atom].kind == RegexKind::kAssertion && !group) {
      return reader_.Fail(ErrorCode::kInvalidArgument, start, "an assertion cannot be repeated");
    }
    if (min > max || min > kMaxCount || (max != kUnbounded && max > kMaxCount)) {
      return reader_.Fail(ErrorCode::kInvalidArgument, at,
                          fmt::format("a repetition needs min <= max <= {}", kMaxCount));
    }
    reader_.Take('?');  // lazy: the same texts match
    if (reader_.peek() == '+') {
      return reader_.Fail(ErrorCode::kUnsupported, at, "possessive quantifier is not supported");
    }
    uint32_t low, high;
    if (reader_.peek() == '*' || reader_.peek() == '?' ||
        (reader_.peek() == '{' && ReadCounts(low, high))) {
      return reader_.Fail(ErrorCode::kInvalidArgument, reader_.pos, "nothing to repeat");
    }
    RegexNode node;
    node.kind = RegexKind::kRepeat;
    node.min = min;
    node.max = max;
    node.children = {atom};
    return Append(std::move(node));
  }

  // "{2}", "{2,}" or "{2,5}" at the position: takes it. Anything else after { is text.
  bool ReadCounts(uint32_t& min, uint32_t& max) {
    size_t pos = reader_.pos + 1;
    const auto read = [&](uint32_t& value) {
      const size_t begin = pos;
      uint64_t number = 0;
      for (; pos < reader_.text.size() && IsDigit(reader_.text[pos]); ++pos) {
        number = std::min<uint64_t>(number * 10 + static_cast<uint64_t>(reader_.text[pos] - '0'),
                                    kMaxCount + 1);
      }
      value = static_cast<uint32_t>(number);
      return pos > begin;
    };
    if (!read(min)) return false;
    max = min;
    if (pos < reader_.text.size() && reader_.text[pos] == ',') {
      ++pos;
      if (!read(max)) max = kUnbounded;
    }
    if (pos >= reader_.text.size() || reader_.text[pos] != '}') return false;
    reader_.pos = pos + 1;
    return true;
  }

  const RegexOptions options_;
  const Limits& limits_;
  RegexReader reader_;
  RegexTree tree_;
  size_t depth_ = 0;
};

}  // namespace

Result<RegexTree> ParseRegex(std::string_view pattern, const RegexOptions& options,
                             const Limits& limits) {
  return RegexParser(pattern, options, limits).Run();
}

}  // namespace deepinfer::grammar
