// Expert routing against the release's.
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

constexpr int64_t kRows = 9;

void CheckGate(bool with_images) {
  ThreadPool pool(2);
  const std::vector<bf16> x = UnitBf16("gate.x"), weight = UnitBf16("gate.weight");
  const std::vector<float> bias = UnitF32("gate.bias"), image_bias = UnitF32("gate.bias_vl");
  const std::vector<uint8_t> is_image = UnitBytes("gate.is_image");
  std::vector<float> logits(kRows * 12), scores(kRows * 12), weights(kRows * 3);
  std::vector<int32_t> ids(kRows * 3);
  Kernels().Multiply(
      pool, kernels::MakeGemm(kernels::RowsView{x.data(), kRows, 64, 64},
                              kernels::Bf16Matrix{weight.data(), 12, 64}, logits.data(), 12));
  kernels::GateArgs args{.rows = kRows, .experts = 12, .topk = 3, .logits = logits.data()};
  args.bias = bias.data();
  if (with_images) {
    args.image_bias = image_bias.data();
    args.is_image = is_image.data();
  }
  args.route_scale = 1.5f;
  args.scores = scores.data();
  args.ids = ids.data();
  args.weights = weights.data();
  Kernels().gate(pool, args);
  const std::string suffix = with_images ? "_with_image" : "";
  // Logits near +-580 carry an fp32 error of some 1e-4, of which the score's square root leaves
  // a relative 1e-7.
  const std::vector<float> want = UnitF32("gate.scores");
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(scores[i], want[i], 1e-6f * std::max(1.0f, want[i])) << "score " << i;
  }
  EXPECT_EQ(ids, Units().Raw<int32_t>("gate.ids" + suffix));
  ExpectF32(weights, "gate.weights" + suffix, 1e-6f);
}

TEST(GateUnits, TextTokensAreRoutedAsInTheRelease) { CheckGate(false); }
TEST(GateUnits, ImageTokensAreRoutedByTheirOwnBias) { CheckGate(true); }

}  // namespace
}  // namespace deepinfer::golden
