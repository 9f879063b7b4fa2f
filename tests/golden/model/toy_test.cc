// The toys end to end: prefill logits, greedy continuations, drafts, image spans.
// Tolerances: goldens/README.md, "How to use them in tests", items 3 to 7.
#include "tests/golden/support/toy.h"

#include "model/v41/engram_hash.h"
#include "tests/golden/support/drafts.h"

namespace deepinfer::golden {
namespace {

using model::v41::ForwardContext;

class Toys : public testing::TestWithParam<std::string> {};

TEST_P(Toys, PrefillLogitsOfEveryPromptStayInTheMeasuredNoise) {
  DEEPINFER_NEEDS_TOYS();
  const Toy toy(GetParam());
  const auto vocab = static_cast<size_t>(toy.model->config().vocab_size);
  ForwardContext context(2);
  const GoldenFile logits = toy.File("logits_idx32");
  // Short prompts are judged one by one, longer ones "statistically": over all rows of their group,
  // since one bf16 step in a prompt's first tokens moves every later row of it (toy-a p49: ours
  // meets one at its fourth token).
  const auto rows_of = [&](const std::vector<std::string>& prompts) {
    std::vector<float> got, want;
    for (const std::string& prompt : prompts) {
      auto state = toy.model->NewSequence();
      const auto ours = RunForward(*toy.model, context, *state, toy.Prompt(prompt));
      const auto theirs = logits.Raw<float>(prompt);
      got.insert(got.end(), ours.begin(), ours.end());
      want.insert(want.end(), theirs.begin(), theirs.end());
    }
    return CompareRows(got, want, vocab);
  };
  for (const std::string prompt : {"p1", "p2", "p3", "p15", "p16", "p17"}) {
    const RowAgreement rows = rows_of({prompt});
    EXPECT_LE(rows.median, 0.01) << prompt;
    EXPECT_LE(rows.max, 0.08) << prompt;
    EXPECT_EQ(rows.clear_misses, 0u) << prompt;
  }
  const RowAgreement middle = rows_of({"p33", "p48", "p49"});
  EXPECT_LE(middle.median, 0.012);
  EXPECT_GE(middle.top1, 0.9);
  const RowAgreement longest = rows_of({"p130", "p257"});
  EXPECT_LE(longest.median, 0.04);
  EXPECT_LE(longest.max, 0.2);
  EXPECT_GE(longest.top1, 0.9);
  std::printf(
      "[ prefill  ] %s: median / max error %.4f / %.3f up to 49 tokens, %.4f / %.3f up to "
      "257; top-1 equal %.1f %% and %.1f %%\n",
      GetParam().c_str(), middle.median, middle.max, longest.median, longest.max, 100 * middle.top1,
      100 * longest.top1);
}

TEST_P(Toys, GreedyContinuationsFollowTheRecordedTokens) {
  DEEPINFER_NEEDS_TOYS();
  const Toy toy(GetParam());
  const auto vocab = static_cast<size_t>(toy.model->config().vocab_size);
  const GoldenFile decode = toy.File("decode");
  ForwardContext context(2);
  size_t equal = 0, steps = 0;
  for (const std::string prompt : {"p1", "p17", "p33", "p130"}) {
    const auto recorded = decode.Raw<int64_t>(prompt + ".tokens");
    const auto margin = decode.Raw<float>(prompt + ".margin");
    const auto want = decode.Raw<float>(prompt + ".decode_idx32");
    const std::vector<int32_t> tokens = toy.Prompt(prompt);
    auto state = toy.model->NewSequence();
    std::vector<float> row = RunForward(*toy.model, context, *state, tokens, 0, 1);
    for (size_t step = 0; step < recorded.size(); ++step, ++steps) {
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      if (best == recorded[step]) {
        ++equal;
      } else {
        // A near tie: the reference's own prefill and decode differ by up to 0.9 in a logit.
        EXPECT_LE(margin[step], 0.9) << prompt << " step " << step;
        std::printf(
            "[ near tie ] %s %s step %zu: ours %ld (%.3f), recorded %ld (%.3f); reference "
            "logits %.3f and %.3f\n",
            GetParam().c_str(), prompt.c_str(), step, static_cast<long>(best), row[best],
            static_cast<long>(recorded[step]), row[recorded[step]], want[step * vocab + best],
            want[step * vocab + recorded[step]]);
      }
      const auto next = static_cast<int32_t>(recorded[step]);
      row = RunForward(*toy.model, context, *state, {&next, 1});
    }
  }
  std::printf("[ greedy   ] %s: %zu of %zu steps equal\n", GetParam().c_str(), equal, steps);
  EXPECT_EQ(steps, 128u);
  EXPECT_GE(equal * 100, steps * 97);
}

TEST_P(Toys, DraftsOfEveryPromptEqualTheRelease) {
  DEEPINFER_NEEDS_TOYS();
  const Toy toy(GetParam());
  const auto vocab = static_cast<size_t>(toy.model->config().vocab_size);
  const GoldenFile drafts = toy.File("dspark");
  ForwardContext context(2);
  for (const std::string prompt : {"p2", "p3", "p15", "p16", "p17"}) {
    auto state = toy.model->NewSequence(true);
    RunForward(*toy.model, context, *state, toy.Prompt(prompt), 0, 0);
    const auto want = drafts.Raw<int64_t>(prompt + ".tokens");
    const BlockDraft draft = DraftBlock(*toy.model, context, *state, static_cast<int32_t>(want[0]));
    EXPECT_TRUE(std::equal(draft.tokens.begin(), draft.tokens.end(), want.begin() + 1)) << prompt;
    EXPECT_LE(CompareRows(draft.logits, drafts.Raw<float>(prompt + ".logits"), vocab).max, 0.08)
        << prompt;
  }
}

TEST_P(Toys, ImageSpansAreDeadForEngramAndRoutedByTheirBias) {
  DEEPINFER_NEEDS_TOYS();
  const Toy toy(GetParam());
  const auto vocab = static_cast<size_t>(toy.model->config().vocab_size);
  const GoldenFile engram = toy.File("engram");
  const auto wide = engram.Raw<int64_t>("span.ids");
  const std::vector<int32_t> tokens(wide.begin(), wide.end());
  const auto is_image = engram.Raw<uint8_t>("span.is_image");
  ForwardContext context(2);
  auto state = toy.model->NewSequence();
  const auto got = RunForward(*toy.model, context, *state, tokens, 0, -1, is_image);
  const RowAgreement rows = CompareRows(got, engram.Raw<float>("span.logits"), vocab);
  EXPECT_LE(rows.median, 0.012);
  EXPECT_GE(rows.top1, 0.9);
  // The spans matter: without the marks the same tokens give something else.
  auto plain = toy.model->NewSequence();
  EXPECT_GT(CompareRows(RunForward(*toy.model, context, *plain, tokens),
                        engram.Raw<float>("span.logits"), vocab)
                .max,
            0.2);
}

INSTANTIATE_TEST_SUITE_P(Both, Toys, testing::Values("toy-a", "toy-b"),
                         [](const auto& info) { return info.param == "toy-a" ? "a" : "b"; });

}  // namespace
}  // namespace deepinfer::golden
