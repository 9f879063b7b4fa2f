// Masks against the definition of a language, on random grammars with a small vocabulary.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/ir_text.h"
#include "grammar/matcher.h"
#include "tests/property/grammar/naive_language.h"
#include "tests/property/grammar/random_grammar.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kEnd = 0;     // the end token; 1 has no bytes
constexpr size_t kLongest = 5;  // bytes that the oracle looks at

std::vector<std::string> Tokens() {
  return {"</s>", "",   "a",   "b",   "c",  "aa",  "ab",  "ba",
          "bc",   "ca", "abc", "cab", "bb", "aab", "ccc", "a"};
}

std::shared_ptr<const Vocabulary> SmallVocabulary() {
  static const auto vocabulary = *Vocabulary::Create(Tokens(), {kEnd});
  return vocabulary;
}

std::vector<bool> MaskOf(Matcher& matcher) {
  std::vector<uint32_t> words(matcher.grammar().vocabulary().mask_words());
  const Status filled = matcher.FillMask(words);
  if (!filled && filled.error().code == ErrorCode::kResourceExhausted) RC_DISCARD("ambiguous");
  RC_ASSERT(filled.has_value());
  std::vector<bool> mask;
  for (int32_t token = 0; token < matcher.grammar().vocabulary().size(); ++token) {
    mask.push_back((words[static_cast<size_t>(token) / 32] >> (token % 32)) & 1);
  }
  return mask;
}

// Takes random allowed tokens from `text` on while the oracle can follow, checking every mask.
void CheckFrom(Matcher& matcher, const NaiveLanguage& language, std::string text) {
  while (true) {
    RC_LOG() << "after '" << text << "'\n";
    const std::vector<bool> mask = MaskOf(matcher);
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < static_cast<int32_t>(mask.size()); ++token) {
      const std::string_view bytes = SmallVocabulary()->token_bytes(token);
      if (token == kEnd) {
        RC_ASSERT(mask[token] == language.IsWord(text));
        RC_ASSERT(matcher.CanEnd() == mask[token]);
        continue;
      }
      RC_ASSERT(*matcher.Allows(token) == mask[static_cast<size_t>(token)]);
      if (bytes.empty()) RC_ASSERT(!mask[static_cast<size_t>(token)]);
      if (bytes.empty() || text.size() + bytes.size() > kLongest) continue;
      const std::string longer = text + std::string(bytes);
      RC_ASSERT(mask[static_cast<size_t>(token)] == language.IsPrefix(longer));
      if (mask[static_cast<size_t>(token)]) allowed.push_back(token);
    }
    if (text.size() < kLongest && !mask[kEnd]) RC_ASSERT(!allowed.empty());
    if (allowed.empty()) return;
    const int32_t token = *rc::gen::elementOf(allowed);
    RC_ASSERT(matcher.Advance(token).has_value());
    text += SmallVocabulary()->token_bytes(token);
  }
}

RC_GTEST_PROP(GrammarMatcher, MaskIsExactlyWhatCanBeCompleted, ()) {
  const GrammarIr ir = RandomGrammar::Draw();
  RC_LOG() << IrText(ir);
  const auto grammar = CompiledGrammar::Create(ir, SmallVocabulary());
  const NaiveLanguage language(ir, kLongest);
  if (!grammar) {
    const bool empty_member =
        grammar.error().message.find("an unordered member may be empty") != std::string::npos;
    RC_ASSERT(language.empty() || empty_member);
    RC_DISCARD("no language");
  }
  RC_ASSERT(!language.empty());
  for (int round = 0; round < 4; ++round) {
    Matcher matcher(*grammar);
    CheckFrom(matcher, language, "");
  }
}

RC_GTEST_PROP(GrammarMatcher, RollbackAndForkEqualAReplay, ()) {
  Limits limits;
  limits.max_step_work =
      10'000;  // every step replays all tokens: very ambiguous grammars take long
  const auto grammar = CompiledGrammar::Create(RandomGrammar::Draw(), SmallVocabulary(), limits);
  if (!grammar) RC_DISCARD("no language");
  Matcher matcher(*grammar);
  std::vector<int32_t> taken;
  const int steps = *rc::gen::inRange(1, 30);
  for (int step = 0; step < steps; ++step) {
    const int kind = *rc::gen::inRange(0, 6);
    if (kind == 0 && !taken.empty()) {
      const size_t undo = *rc::gen::inRange<size_t>(1, taken.size() + 1);
      RC_ASSERT(matcher.Rollback(undo).has_value());
      taken.resize(taken.size() - undo);
    } else if (kind == 1) {
      Matcher fork = matcher.Fork();
      for (int32_t token = 0; token < SmallVocabulary()->size(); ++token) {
        if (fork.Advance(token)) break;  // whatever it does, the original must not notice
      }
      if (*rc::gen::arbitrary<bool>()) matcher = matcher.Fork();
    } else {
      const std::vector<bool> mask = MaskOf(matcher);
      std::vector<int32_t> allowed;
      for (size_t token = 0; token < mask.size(); ++token) {
        if (mask[token]) allowed.push_back(static_cast<int32_t>(token));
      }
      if (allowed.empty()) continue;
      taken.push_back(*rc::gen::elementOf(allowed));
      const Status advanced = matcher.Advance(taken.back());
      if (!advanced && advanced.error().code == ErrorCode::kResourceExhausted) {
        RC_DISCARD("ambiguous");
      }
      RC_ASSERT(advanced.has_value());
    }
    Matcher replay(*grammar);
    RC_ASSERT(*replay.AcceptSeveral(taken) == taken.size());
    RC_ASSERT(matcher.num_taken() == taken.size());
    RC_ASSERT(MaskOf(replay) == MaskOf(matcher));
    RC_ASSERT(replay.CanEnd() == matcher.CanEnd());
    RC_ASSERT(replay.has_ended() == matcher.has_ended());
  }
}

RC_GTEST_PROP(GrammarMatcher, ForcedBytesAreTheOnlyWay, ()) {
  const GrammarIr ir = RandomGrammar::Draw();
  RC_LOG() << IrText(ir);
  const auto grammar = CompiledGrammar::Create(ir, SmallVocabulary());
  if (!grammar) RC_DISCARD("no language");
  const NaiveLanguage language(ir, kLongest);
  Matcher matcher(*grammar);
  const std::string forced = matcher.ForcedBytes(kLongest);
  for (size_t n = 0; n < forced.size(); ++n) {
    const std::string text = forced.substr(0, n);
    RC_ASSERT(!language.IsWord(text));
    for (const char c : {'a', 'b', 'c'}) RC_ASSERT(language.IsPrefix(text + c) == (c == forced[n]));
  }
  if (forced.size() == kLongest) return;
  int ways = language.IsWord(forced) ? 1 : 0;
  for (const char c : {'a', 'b', 'c'}) ways += language.IsPrefix(forced + c) ? 1 : 0;
  // A word that ends here, and goes nowhere, is the one case of a single way without a byte.
  RC_ASSERT(ways != 1 || language.IsWord(forced));
}

}  // namespace
}  // namespace deepinfer::grammar
