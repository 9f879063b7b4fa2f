// Declares a command's flags without showing the command-line library to every command.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_parser.h"

namespace CLI {
class App;
}

namespace deepinfer::cli {

// Wraps one sub-command of the parser. Targets must outlive the parse. Names come without dashes.
// Of a flag given twice the last one counts.
class FlagSet {
 public:
  explicit FlagSet(CLI::App& app) : app_(app) {}

  // An argument without a dash ("PROMPT"); empty optional when absent.
  void Positional(const std::string& name, std::optional<std::string>& target,
                  const std::string& help);
  void RequiredPositional(const std::string& name, std::string& target, const std::string& help);
  // All further arguments without a dash.
  void PositionalList(const std::string& name, std::vector<std::string>& target,
                      const std::string& help);
  // "--name VALUE".
  void Text(const std::string& name, std::optional<std::string>& target,
            const std::string& value_name, const std::string& help);
  void Integer(const std::string& name, std::optional<int64_t>& target, int64_t min, int64_t max,
               const std::string& help);
  // "--name".
  void Switch(const std::string& name, bool& target, const std::string& help);
  // Flags of config/option_table.h, by option name, with the table's help.
  void FromTable(std::initializer_list<std::string_view> options);
  // The file of option values, "--config FILE", unless the command has another "--config".
  void ConfigFile();

  // After the parse: the table's options that the command line gave, and the config file.
  std::vector<OptionValue> TableValues() const;
  const std::optional<std::string>& config_file() const { return config_file_; }

 private:
  CLI::App& app_;
  std::map<std::string, std::string, std::less<>> table_values_;
  std::optional<std::string> config_file_;
};

}  // namespace deepinfer::cli
