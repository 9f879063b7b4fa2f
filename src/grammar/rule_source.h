// What the readers of grammar texts share: a position, errors with line and column, named rules.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/limits.h"
#include "grammar/source_position.h"

namespace deepinfer::grammar {

class RuleSource {
 public:
  // `format` names the kind of text in errors. Keeps references.
  RuleSource(std::string_view format, std::string_view text) : format_(format), text_(text) {}

  size_t pos = 0;

  std::string_view text() const { return text_; }
  bool at_end() const { return pos >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return pos + ahead < text_.size() ? text_[pos + ahead] : '\0';
  }
  std::string_view rest() const { return text_.substr(std::min(pos, text_.size())); }
  bool Take(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    pos += expected.size();
    return true;
  }

  template <typename... Args>
  tl::unexpected<Error> Fail(ErrorCode code, size_t at, fmt::format_string<Args...> format,
                             Args&&... args) const {
    return MakeError(code, "{}, {}: {}", format_, PositionText(text_, at),
                     fmt::format(format, std::forward<Args>(args)...));
  }

  // kResourceExhausted if the text is too long, kInvalidArgument if it is no UTF-8.
  Status CheckText(const Limits& limits) const;

  // A decimal number of at most 1,000,000,000 at the position.
  Result<uint32_t> ReadNumber();
  // After a backslash: the character that xHH, uHHHH, UHHHHHHHH or one of n r t \ " ' [ ] / - ^
  // stands for, or nothing.
  std::optional<uint32_t> ReadEscape();

 private:
  std::string_view format_;
  std::string_view text_;
};

// Rules by name, which may be used before they are defined.
class RuleNames {
 public:
  explicit RuleNames(GrammarIr& ir) : ir_(ir) {}

  NodeId Use(std::string_view name, size_t at) { return ir_.Call(Entry(name, at).rule); }
  bool IsDefined(std::string_view name) const {
    const auto entry = rules_.find(name);
    return entry != rules_.end() && ir_.has_body(entry->second.rule);
  }
  void Define(std::string_view name, size_t at, NodeId body) {
    ir_.SetBody(Entry(name, at).rule, body);
  }
  RuleId Rule(std::string_view name, size_t at) { return Entry(name, at).rule; }

  // kInvalidArgument at the first use of a rule without a definition.
  Status CheckAllDefined(const RuleSource& source) const;

 private:
  struct Named {
    RuleId rule;
    size_t first_use;
  };
  Named& Entry(std::string_view name, size_t at) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second;
    const RuleId rule = ir_.AddRule(std::string(name));
    return rules_.emplace(std::string(name), Named{rule, at}).first->second;
  }

  GrammarIr& ir_;
  std::map<std::string, Named, std::less<>> rules_;
};

}  // namespace deepinfer::grammar
