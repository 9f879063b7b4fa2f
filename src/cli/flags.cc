#include "cli/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "config/option_table.h"

namespace deepinfer::cli {

void FlagSet::Positional(const std::string& name, std::optional<std::string>& target,
                         const std::string& help) {
  app_.add_option_function<std::string>(
          name, [&target](const std::string& value) { target = value; }, help)
      ->type_name("");
}

void FlagSet::RequiredPositional(const std::string& name, std::string& target,
                                 const std::string& help) {
  app_.add_option(name, target, help)->required()->type_name("");
}

void FlagSet::PositionalList(const std::string& name, std::vector<std::string>& target,
                             const std::string& help) {
  app_.add_option(name, target, help)->type_name("");
}

void FlagSet::Text(const std::string& name, std::optional<std::string>& target,
                   const std::string& value_name, const std::string& help) {
  app_.add_option_function<std::string>(
          "--" + name, [&target](const std::string& value) { target = value; }, help)
      ->type_name(value_name)
      ->take_last();
}

void FlagSet::Integer(const std::string& name, std::optional<int64_t>& target, int64_t min,
                      int64_t max, const std::string& help) {
  app_.add_option_function<int64_t>(
          "--" + name,
          [&target, name, min, max](int64_t value) {
            if (value < min || value > max) {
              throw CLI::ValidationError(
                  "--" + name, fmt::format("{} is not an integer from {} to {}", value, min, max));
            }
            target = value;
          },
          help)
      ->type_name("N")
      ->take_last();
}

void FlagSet::Switch(const std::string& name, bool& target, const std::string& help) {
  app_.add_flag("--" + name, target, help)->take_last();
}

void FlagSet::FromTable(std::initializer_list<std::string_view> options) {
  for (std::string_view name : options) {
    const OptionSpec* spec = FindOption(name);
    if (spec == nullptr) {
      throw CLI::OptionNotFound("option table: " + std::string(name));
    }
    app_.add_option_function<std::string>(
            "--" + std::string(name),
            [this, key = std::string(name)](const std::string& value) {
              table_values_[key] = value;
            },
            OptionHelp(*spec))
        ->type_name(std::string(spec->value_name))
        ->take_last();
  }
}

void FlagSet::ConfigFile() {
  if (app_.get_option_no_throw("--config") != nullptr) return;
  Text("config", config_file_, "FILE",
       "JSON file of option values; the command line and the environment go before it.");
}

std::vector<OptionValue> FlagSet::TableValues() const {
  std::vector<OptionValue> values;
  for (const auto& [name, value] : table_values_) values.push_back({name, value});
  return values;
}

}  // namespace deepinfer::cli
