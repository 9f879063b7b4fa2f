// Blocks of the trunk and of the draft stages against captures of the release's reference,
// teacher-forced. Tolerances: engine/verify.h.
#include <set>

#include "engine/verify.h"
#include "tests/golden/support/drafts.h"
#include "tests/golden/support/toy.h"

namespace deepinfer::golden {
namespace {

using model::v41::ForwardContext;

// Tensors of a capture that no block produces under that name: margins, block scores, lists of
// layers that reuse one (checked through attn_o), rows before the final norm, the last logits
// (checked apart), and for the draft stages their ring and key lists.
const std::set<std::string> kElsewhere = {"gate_margin",
                                          "candidate_block_score",
                                          "candidates",
                                          "topk_idxs",
                                          "final_collapsed",
                                          "logits_last",
                                          "attn_kv",
                                          "attn_idxs",
                                          "ring",
                                          "main_x_last"};

void ExpectAgreement(const VerifyReport& report, const std::string& where, size_t kinds) {
  std::set<std::string> leaves;
  for (const TensorComparison& t : report.tensors) {
    EXPECT_TRUE(t.agrees) << where << " " << t.name << ": " << t.problem;
    leaves.insert(t.name.substr(t.name.rfind('.') + 1));
  }
  EXPECT_GE(leaves.size(), kinds) << where;
  for (const std::string& name : report.unused) {
    EXPECT_EQ(kElsewhere.count(name.substr(name.rfind('.') + 1)), 1u) << where << " " << name;
  }
}

class Capture : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Capture, EveryBlockEqualsTheReleaseFromTheSameInput) {
  DEEPINFER_NEEDS_TOYS();
  const auto& [name, prompt] = GetParam();
  const Toy toy(name);
  const std::vector<int32_t> tokens = toy.Prompt(prompt);
  const auto capture =
      SafetensorsFile::Open(toy.dir / ("capture_" + prompt + "_idx32.safetensors"));
  ASSERT_TRUE(capture);
  ForwardContext context(2);
  auto state = toy.model->NewSequence(true);
  DumpComparer comparer(*capture, std::ssize(tokens), /*free_running=*/false);
  context.probe = &comparer;
  const auto logits = RunForward(*toy.model, context, *state, tokens);
  ExpectAgreement(comparer.TakeReport(), name + " " + prompt, 25);

  const auto want = toy.File("logits_idx32").Raw<float>(prompt);
  const size_t vocab = static_cast<size_t>(toy.model->config().vocab_size);
  const std::span<const float> last(want.data() + want.size() - vocab, vocab);
  EXPECT_LE(CompareRows(std::span(logits).last(vocab), last, vocab).max, 1e-5);

  // The draft stages, from the taps of the forced forward.
  const GoldenFile drafts = toy.File("dspark");
  const auto draft_tokens = drafts.Raw<int64_t>(prompt + ".tokens");
  const auto draft_capture =
      SafetensorsFile::Open(toy.dir / ("capture_dspark_" + prompt + ".safetensors"));
  ASSERT_TRUE(draft_capture);
  DumpComparer draft_comparer(*draft_capture, std::ssize(tokens), /*free_running=*/false);
  context.probe = &draft_comparer;
  const BlockDraft draft =
      DraftBlock(*toy.model, context, *state, static_cast<int32_t>(draft_tokens[0]));
  ExpectAgreement(draft_comparer.TakeReport(), name + " draft " + prompt, 15);
  EXPECT_TRUE(std::equal(draft.tokens.begin(), draft.tokens.end(), draft_tokens.begin() + 1));
  const auto confidence = drafts.Raw<float>(prompt + ".confidence");
  for (size_t i = 0; i < confidence.size(); ++i) {
    EXPECT_NEAR(draft.confidence[i], confidence[i], 1e-4) << i;
  }
  EXPECT_LE(CompareRows(draft.logits, drafts.Raw<float>(prompt + ".logits"), vocab).max, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Toys, Capture,
                         testing::Combine(testing::Values("toy-a", "toy-b"),
                                          testing::Values("p33", "p130")),
                         [](const auto& info) {
                           std::string name =
                               std::get<0>(info.param) + "_" + std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace deepinfer::golden
