// IR as readable text, for tests and error reports.
#pragma once

#include <string>

#include "grammar/ir.h"

namespace deepinfer::grammar {

// One rule a line, "name ::= body", close to GBNF; unordered members stand between &{ and }.
std::string IrText(const GrammarIr& ir);

}  // namespace deepinfer::grammar
