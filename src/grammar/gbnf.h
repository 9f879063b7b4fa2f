// GBNF, the EBNF of llama.cpp's users. docs/grammar.md lists what is read.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// The start rule is "root". Errors have line and column: kInvalidArgument for what is malformed or
// undefined, kUnsupported for token references (<...>), kResourceExhausted beyond the limits.
Result<GrammarIr> GbnfToIr(std::string_view text, Budget& budget);

}  // namespace deepinfer::grammar
