// From a request's so_args to the grammar that its answer must follow.
#pragma once

#include "base/result.h"
#include "deepinfer/sampling_params.h"
#include "grammar/grammar_cache.h"

namespace deepinfer {

// What a grammar is known by, and how it is read when it is not known yet.
struct GrammarSource {
  grammar::GrammarKey key;
  grammar::GrammarCache::MakeIr make_ir;
};

// Errors: an unknown schema_type, with those there are; a schema where none belongs, or none where
// one does; text that is not UTF-8. What is wrong inside the text shows when make_ir runs.
Result<GrammarSource> MakeGrammarSource(const StructuredOutput& structured);

}  // namespace deepinfer
