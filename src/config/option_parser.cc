#include "config/option_parser.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "base/file.h"
#include "config/option_table.h"
#include "config/strict_json.h"

namespace deepinfer {
namespace {

constexpr std::string_view kVariablePrefix = "DEEPINFER_";
constexpr size_t kMaxConfigFileBytes = size_t{1} << 20;

// Sets one option; `origin` says in an error where the value came from.
Status Apply(const OptionSpec& spec, std::string_view text, OptionSource source,
             std::string_view origin, ResolvedOptions& resolved) {
  if (Status status = spec.set(spec, text, resolved.values); !status) {
    return MakeError(status.error().code, "option {}: {} (from {})", spec.name,
                     status.error().message, origin);
  }
  resolved.sources[std::string(spec.name)] = source;
  return {};
}

Status ApplyConfigFile(const std::filesystem::path& path, ResolvedOptions& resolved) {
  DI_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigFileBytes));
  const std::string origin = fmt::format("config file {}", path.string());
  DI_ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(text, origin));
  if (!json.is_object()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} is not a JSON object of option names to values", origin);
  }
  for (const auto& [key, value] : json.items()) {
    const OptionSpec* spec = FindOption(key);
    if (spec == nullptr) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "{}: unknown key \"{}\" (docs/options.md lists the options)", origin, key);
    }
    const bool is_number_option =
        spec->kind == OptionKind::kInteger || spec->kind == OptionKind::kReal;
    if (!value.is_string() && !(value.is_number() && is_number_option)) {
      return MakeError(ErrorCode::kInvalidArgument, "option {}: {} is not {} (from {})", spec->name,
                       ShownJson(value), AllowedValues(*spec), origin);
    }
    const std::string value_text = value.is_string() ? value.get<std::string>() : value.dump();
    DI_RETURN_IF_ERROR(Apply(*spec, value_text, OptionSource::kConfigFile, origin, resolved));
  }
  return {};
}

// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Names the closest known variable when the unknown one looks like a slip of the keyboard.
std::string UnknownVariableWarning(std::string_view name) {
  std::string_view closest;
  size_t smallest = 4;
  for (const OptionSpec& spec : OptionTable()) {
    const size_t distance = EditDistance(name, spec.environment);
    if (distance < smallest) {
      smallest = distance;
      closest = spec.environment;
    }
  }
  return closest.empty()
             ? fmt::format("environment variable {} is ignored: no option has it", name)
             : fmt::format("environment variable {} is ignored: no option has it; did you mean {}?",
                           name, closest);
}

bool IsKnownVariable(std::string_view name) {
  return std::ranges::any_of(OptionTable(), [&](const auto& s) { return s.environment == name; }) ||
         std::ranges::any_of(OtherVariables(), [&](const auto& v) { return v.name == name; });
}

Status ApplyEnvironment(const Environment& environment, ResolvedOptions& resolved) {
  for (const auto& [name, value] : environment) {
    if (name.starts_with(kVariablePrefix) && !IsKnownVariable(name)) {
      resolved.warnings.push_back(UnknownVariableWarning(name));
    }
  }
  for (const OptionSpec& spec : OptionTable()) {
    const auto found = environment.find(std::string(spec.environment));
    if (found == environment.end() || found->second.empty()) continue;
    DI_RETURN_IF_ERROR(Apply(spec, found->second, OptionSource::kEnvironment,
                             fmt::format("environment variable {}", spec.environment), resolved));
  }
  return {};
}

}  // namespace

Environment ReadEnvironment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with(kVariablePrefix)) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Result<ResolvedOptions> ResolveOptions(const std::vector<OptionValue>& from_cli,
                                       const Environment& environment,
                                       const std::optional<std::filesystem::path>& config_file) {
  ResolvedOptions resolved;
  std::optional<std::filesystem::path> config_path = config_file;
  if (const auto found = environment.find("DEEPINFER_CONFIG");
      !config_path && found != environment.end() && !found->second.empty()) {
    config_path = found->second;
  }
  if (config_path) DI_RETURN_IF_ERROR(ApplyConfigFile(*config_path, resolved));
  DI_RETURN_IF_ERROR(ApplyEnvironment(environment, resolved));
  for (const OptionValue& given : from_cli) {
    const OptionSpec* spec = FindOption(given.name);
    if (spec == nullptr) {
      return MakeError(ErrorCode::kInvalidArgument,
                       "unknown option --{} (docs/options.md lists the options)", given.name);
    }
    DI_RETURN_IF_ERROR(
        Apply(*spec, given.value, OptionSource::kCommandLine, "command line", resolved));
  }
  return resolved;
}

}  // namespace deepinfer
