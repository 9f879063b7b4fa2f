// The vocabulary of Engram: token ids that differ only in case, accents or spacing share one
// compressed id. Source: spec model-v41 section 2.4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

// The compressed id of each id in [0, vocab_size), numbered in the order of first appearance.
//
// Ids without a token, and ids from tokenizer.vocab_size() up (checkpoints pad their embeddings),
// all share the key of the empty text: the release's own map is built over tokens alone, so no
// golden says otherwise, and no prompt contains such an id.
//
// Errors: a token id at or above vocab_size; a number of compressed ids other than
// expected_compressed, which is what tells a tokenizer that does not belong to the checkpoint.
// Without expected_compressed any number is accepted, for checkpoints that are being made.
Result<std::vector<int32_t>> BuildEngramTokenMap(const Tokenizer& tokenizer, int64_t vocab_size,
                                                 std::optional<int64_t> expected_compressed);

}  // namespace deepinfer
