// What the fuzz targets of grammar front ends check.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grammar/matcher.h"

namespace deepinfer::grammar {

inline void Require(bool holds) {
  if (!holds) std::abort();
}

// Small limits keep one input fast.
inline Limits FuzzLimits() {
  Limits limits;
  limits.max_states = 5'000;
  limits.max_work = 500'000;
  limits.max_step_work = 200'000;
  return limits;
}

// A grammar that was accepted leads somewhere from wherever its masks allow to go, and takes what
// they allow.
inline void CheckGrammar(Result<GrammarIr> ir, Budget& budget, const uint8_t* choices,
                         size_t num_choices) {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    std::vector<std::string> tokens = {""};
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* word : {"ab", "aa", "\"}", "\xe2\x82", "\x82\xac", "12"}) {
      tokens.emplace_back(word);
    }
    return *Vocabulary::Create(std::move(tokens), {0});
  }();
  if (!ir) {
    Require(!ir.error().message.empty());
    return;
  }
  const auto grammar = CompiledGrammar::Create(std::move(*ir), vocabulary, budget);
  if (!grammar) {
    Require(!grammar.error().message.empty());
    return;
  }
  Matcher matcher(*grammar);
  std::vector<uint32_t> mask(vocabulary->mask_words());
  for (size_t i = 0; i < num_choices && i < 16; ++i) {
    const Status filled = matcher.FillMask(mask);
    if (!filled) return;
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < vocabulary->size(); ++token) {
      if ((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) allowed.push_back(token);
    }
    Require(!allowed.empty());
    const Status taken = matcher.Advance(allowed[choices[i] % allowed.size()]);
    Require(taken.has_value() || taken.error().code == ErrorCode::kResourceExhausted);
    if (!taken || matcher.has_ended()) return;
  }
}

}  // namespace deepinfer::grammar
