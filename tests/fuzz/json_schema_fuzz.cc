// Whatever the schema is: an error with a message, or a grammar without dead ends.
#include <string_view>

#include "grammar/json_schema/json_schema.h"
#include "tests/fuzz/grammar_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace grammar = deepinfer::grammar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  grammar::JsonSchemaOptions options;
  if (size % 2 == 1) options.key_order = grammar::JsonSchemaOptions::KeyOrder::kDeclared;
  grammar::Budget budget(grammar::FuzzLimits());
  grammar::CheckGrammar(grammar::JsonSchemaToIr(text, options, budget), budget, data, size);
  return 0;
}
