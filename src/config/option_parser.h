// Resolves options from their four sources: command line > environment > config file > default.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace deepinfer {

// One option as the command line gave it; `name` has no dashes in front ("top-p").
struct OptionValue {
  std::string name;
  std::string value;
};

// Environment variables by name.
using Environment = std::map<std::string, std::string>;

// This process's variables whose names begin with DEEPINFER_.
Environment ReadEnvironment();

enum class OptionSource { kDefault, kConfigFile, kEnvironment, kCommandLine };

struct ResolvedOptions {
  Options values;
  // Where an option's value came from; options that are absent have their default.
  std::map<std::string, OptionSource, std::less<>> sources;
  // One sentence for each DEEPINFER_ variable that no option has.
  std::vector<std::string> warnings;
};

// The config file is a JSON object of option names to values; DEEPINFER_CONFIG names one when
// `config_file` is empty. An empty environment variable counts as unset; of a flag given twice the
// last one counts. Errors name option, source, value and what is allowed; an unknown key in the
// config file or an unknown name in `from_cli` is an error, an unknown variable a warning.
Result<ResolvedOptions> ResolveOptions(const std::vector<OptionValue>& from_cli,
                                       const Environment& environment,
                                       const std::optional<std::filesystem::path>& config_file);

}  // namespace deepinfer
