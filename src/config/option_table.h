// The one table of options: names, types, ranges and help of every field of Options. Command-line
// flags, environment variables, config-file keys, --help and docs/options.md all come from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/options.h"

namespace deepinfer {

enum class OptionKind {
  kText,     // any string
  kInteger,  // [min, max]
  kReal,     // [min, max], or (min, max] with min_is_open; finite
  kChoice,   // one of `choices`
};

struct OptionSpec {
  std::string_view name;         // flag "--name" and config-file key "name"
  std::string_view environment;  // "DEEPINFER_..."
  std::string_view value_name;   // stands for the value in help: "N", "DIR"
  OptionKind kind = OptionKind::kText;
  double min = 0;  // kReal
  double max = 0;
  bool min_is_open = false;
  int64_t integer_min = 0;  // kInteger
  int64_t integer_max = 0;
  std::span<const std::string_view> choices = {};  // kChoice
  std::string_view help;  // one sentence, no default, range or variable name

  // Parses `text` into its field. The error names the value and what is allowed, not the option.
  Status (*set)(const OptionSpec& spec, std::string_view text, Options& options) = nullptr;
  // The field as text that `set` accepts again.
  std::string (*get)(const Options& options) = nullptr;
};

// All options in the order of the documentation. Static storage.
std::span<const OptionSpec> OptionTable();

// A DEEPINFER_ variable that is not an option: read by build scripts, tests or before options are.
struct OtherVariable {
  std::string_view name;
  std::string_view help;
};
std::span<const OtherVariable> OtherVariables();

// nullptr when no option has this name.
const OptionSpec* FindOption(std::string_view name);

// What is allowed: "an integer from 0 to 1024", "one of off, compact".
std::string AllowedValues(const OptionSpec& spec);

// Help line without the flag itself: the sentence, allowed values, default and variable.
std::string OptionHelp(const OptionSpec& spec);

// docs/options.md, whole.
std::string OptionsMarkdown();

}  // namespace deepinfer
