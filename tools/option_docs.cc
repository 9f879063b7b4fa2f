// Prints docs/options.md as the option table would have it.
#include <cstdio>
#include <string>

#include "config/option_table.h"

int main() {
  const std::string text = deepinfer::OptionsMarkdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
