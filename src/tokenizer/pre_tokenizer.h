// Cuts text into the pieces inside which byte pairs may merge: the Split stages of tokenizer.json,
// with a hand-written scanner for each regular expression of the DeepSeek releases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace deepinfer {

// One Split stage with behaviour Isolated.
enum class SplitRule : uint8_t {
  kNumbers,  // \p{N}{1,3}
  kCjk,      // [一-龥぀-ゟ゠-ヿ]+
  kWords,    // words, punctuation runs and white space: kWordsRegex in pre_tokenizer.cc
};

// The rule whose regular expression is spelled exactly so; none for any other.
std::optional<SplitRule> RecogniseSplitRegex(std::string_view regex);

// The end of the piece that begins at text[begin], begin < text.size(): the rule's match there, or
// all up to its next match or the end. `begin` must itself be a piece's begin or 0. Each byte that
// belongs to no valid UTF-8 sequence is a character outside every class.
size_t PieceEnd(SplitRule rule, std::string_view text, size_t begin);

// Calls fn(piece) for the pieces of `text` in order: each stage cuts the pieces of the one before
// it, seeing no further than their ends. Linear in the text's bytes.
template <typename Fn>
void ForEachPiece(std::span<const SplitRule> stages, std::string_view text, Fn&& fn) {
  if (stages.empty()) {
    if (!text.empty()) fn(text);
    return;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = PieceEnd(stages.front(), text, begin);
    ForEachPiece(stages.subspan(1), text.substr(begin, end - begin), fn);
    begin = end;
  }
}

}  // namespace deepinfer
