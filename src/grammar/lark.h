// A subset of Lark's grammar language. docs/grammar.md lists what is read.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/ir.h"
#include "grammar/limits.h"

namespace deepinfer::grammar {

// The start rule is "start". The text is read as a grammar of strings: every string that the rules
// derive is in the language, whichever way Lark's lexer would have split it. Errors have line and
// column: kInvalidArgument for what is malformed or undefined, kUnsupported with its name for what
// is left out, kResourceExhausted beyond the limits.
Result<GrammarIr> LarkToIr(std::string_view text, Budget& budget);

}  // namespace deepinfer::grammar
