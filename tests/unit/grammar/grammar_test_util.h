// Grammars and vocabularies of the unit tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {

// Id 0 is the end token, id 1 + b the byte b, then the words.
inline std::shared_ptr<const Vocabulary> ByteVocabulary(std::vector<std::string> words = {}) {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.insert(tokens.end(), words.begin(), words.end());
  return *Vocabulary::Create(std::move(tokens), {0});
}

using Compiled = Result<std::shared_ptr<const CompiledGrammar>>;
using FrontEnd = Result<GrammarIr> (*)(std::string_view, Budget&);

inline Result<GrammarIr> PlainRegexToIr(std::string_view pattern, Budget& budget) {
  return RegexToIr(pattern, {}, budget);
}

inline Compiled Compile(FrontEnd front_end, std::string_view text,
                        std::shared_ptr<const Vocabulary> vocabulary = ByteVocabulary(),
                        const Limits& limits = {}) {
  Budget budget(limits);
  DI_ASSIGN_OR_RETURN(GrammarIr ir, front_end(text, budget));
  return CompiledGrammar::Create(std::move(ir), std::move(vocabulary), budget);
}

// Whether the text is in the grammar's language, byte by byte.
inline bool Accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return matcher.AdvanceBytes(text).has_value() && matcher.CanEnd();
}

inline std::vector<int32_t> Allowed(Matcher& matcher) {
  std::vector<uint32_t> mask(matcher.grammar().vocabulary().mask_words());
  EXPECT_TRUE(matcher.FillMask(mask).has_value());
  std::vector<int32_t> allowed;
  for (int32_t token = 0; token < matcher.grammar().vocabulary().size(); ++token) {
    if ((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) allowed.push_back(token);
  }
  return allowed;
}

}  // namespace deepinfer::grammar
