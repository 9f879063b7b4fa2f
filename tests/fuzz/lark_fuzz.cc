// Whatever the Lark grammar is: an error with a message, or a grammar without dead ends.
#include <string_view>

#include "grammar/lark.h"
#include "tests/fuzz/grammar_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace grammar = deepinfer::grammar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  grammar::Budget budget(grammar::FuzzLimits());
  grammar::CheckGrammar(grammar::LarkToIr(text, budget), budget, data, size);
  return 0;
}
