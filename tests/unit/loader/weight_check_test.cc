#include "loader/weight_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/numeric.h"
#include "tests/unit/loader/tiny_checkpoint.h"

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One more byte in front shifts the elements off their natural alignment.
class Weights {
 public:
  Weights(DType dtype, Shape shape, char fill = 0) : view_{dtype, std::move(shape), nullptr} {
    bytes_.assign(view_.bytes() + 1, fill);
    view_.data = reinterpret_cast<const std::byte*>(bytes_.data()) + 1;
  }
  template <typename T>
  void Set(int64_t index, T value) {
    std::memcpy(bytes_.data() + 1 + index * static_cast<int64_t>(sizeof value), &value,
                sizeof value);
  }
  const TensorView& view() const { return view_; }

 private:
  std::string bytes_;
  TensorView view_;
};

TEST(FirstNonFinite, FindsEveryBadBf16CodeAndNoOther) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Weights weights(DType::kBF16, {3});
    weights.Set(1, static_cast<uint16_t>(bits));
    const float value = ToFloat(bf16{static_cast<uint16_t>(bits)});
    ASSERT_EQ(FirstNonFinite(weights.view()).has_value(), !std::isfinite(value)) << bits;
  }
}

TEST(FirstNonFinite, FindsNaNAndInfinityInF32) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                    std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)}) {
    Weights weights(DType::kF32, {7});
    weights.Set(6, bad);
    EXPECT_EQ(FirstNonFinite(weights.view()), 6);
  }
  for (float good : {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(),
                     std::numeric_limits<float>::denorm_min(), -0.0f}) {
    Weights weights(DType::kF32, {7});
    weights.Set(6, good);
    EXPECT_EQ(FirstNonFinite(weights.view()), std::nullopt);
  }
}

TEST(FirstNonFinite, FindsTheNaNCodesOfTheByteTypes) {
  for (int code = 0; code < 256; ++code) {
    for (DType dtype : {DType::kF8E4M3, DType::kF8E8M0, DType::kI8, DType::kU8}) {
      Weights weights(dtype, {5});
      weights.Set(4, static_cast<uint8_t>(code));
      const bool bad = dtype == DType::kF8E4M3   ? (code & 0x7f) == 0x7f
                       : dtype == DType::kF8E8M0 ? code == 255
                                                 : false;
      ASSERT_EQ(FirstNonFinite(weights.view()).has_value(), bad) << DTypeName(dtype) << " " << code;
    }
  }
}

TEST(FirstNonFinite, GivesTheFirstOfSeveralAcrossBlocks) {
  const int64_t count = 200'000;
  for (int64_t where :
       {int64_t{0}, int64_t{1}, int64_t{65535}, int64_t{65536}, int64_t{131072}, count - 1}) {
    Weights weights(DType::kF8E4M3, {count});
    weights.Set<uint8_t>(where, 0xff);
    weights.Set<uint8_t>(count - 1, 0x7f);
    EXPECT_EQ(FirstNonFinite(weights.view()), where);
  }
}

TEST(FirstNonFinite, EmptyTensorsAreFine) {
  EXPECT_EQ(FirstNonFinite(Weights(DType::kF32, {0, 4}).view()), std::nullopt);
}

std::vector<StoredTensor> Stored(const Weights& plain, const Weights& expert,
                                 const Weights& table) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, weights, shard] :
       {std::tuple("norm.weight", &plain, "a"),
        std::tuple("layers.0.ffn.experts.0.w1.scale", &expert, "b"),
        std::tuple("layers.1.engram.embed.weight", &table, "c")}) {
    StoredTensor tensor = Described(name, weights->view().dtype, weights->view().shape, shard);
    tensor.view.data = weights->view().data;
    tensors.push_back(tensor);
  }
  return tensors;
}

TEST(CheckWeightValues, ErrorsNameTensorFileValueAndElement) {
  Weights weights(DType::kF32, {2, 5});
  weights.Set(7, std::numeric_limits<float>::quiet_NaN());
  const Weights scale(DType::kF8E8M0, {2}, 127);
  const auto checked = CheckWeightValues(Stored(weights, scale, scale), WeightCheck::kAll);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(checked.error().message, "tensor norm.weight (in a) has NaN at element 7 of 10");

  weights.Set(7, -std::numeric_limits<float>::infinity());
  EXPECT_THAT(CheckWeightValues(Stored(weights, scale, scale), WeightCheck::kAll).error().message,
              HasSubstr("has -infinity at element 7"));
}

TEST(CheckWeightValues, ModesDecideWhatIsRead) {
  const Weights good(DType::kBF16, {4});
  Weights bad(DType::kF8E8M0, {4}, 127);
  bad.Set<uint8_t>(2, 255);
  // Small checkpoints are checked whole.
  EXPECT_THAT(CheckWeightValues(Stored(good, bad, good), WeightCheck::kAuto).error().message,
              AllOf(HasSubstr("experts.0.w1.scale"), HasSubstr("NaN (code 255) at element 2")));
  EXPECT_FALSE(CheckWeightValues(Stored(good, good, bad), WeightCheck::kAuto));
  EXPECT_TRUE(CheckWeightValues(Stored(bad, bad, bad), WeightCheck::kNone));

  // Above 1 GiB no codes of experts and no tables; nothing may touch the large ones, which here
  // have no bytes at all.
  std::vector<StoredTensor> large = Stored(good, good, bad);
  large.push_back(Described("layers.2.engram.embed.weight", DType::kF8E4M3, {int64_t{1} << 29}));
  large.push_back(Described("layers.2.ffn.experts.0.w1.weight", DType::kI8, {int64_t{1} << 29}));
  EXPECT_TRUE(CheckWeightValues(large, WeightCheck::kAuto));
  large[1].view = bad.view();
  EXPECT_THAT(CheckWeightValues(large, WeightCheck::kAuto).error().message,
              HasSubstr("experts.0.w1.scale"));
  large[0].view = bad.view();
  EXPECT_THAT(CheckWeightValues(large, WeightCheck::kAuto).error().message,
              HasSubstr("norm.weight"));
}

TEST(CheckWeightValues, ScalesOfMatricesLieInTheRangeThatKernelsCompute) {
  const Weights good(DType::kBF16, {4});
  for (int code = 0; code < 255; ++code) {
    Weights scales(DType::kF8E8M0, {3}, 127);
    scales.Set(2, static_cast<uint8_t>(code));
    const bool in_range = code >= 127 - 63 && code <= 127 + 63;
    EXPECT_EQ(CheckWeightValues(Stored(good, scales, good), WeightCheck::kAll).has_value(),
              in_range)
        << code;
    // Engram rows are decoded alone, whatever their scale.
    EXPECT_TRUE(CheckWeightValues(Stored(good, good, scales), WeightCheck::kAll)) << code;
    EXPECT_TRUE(CheckWeightValues(Stored(good, scales, good), WeightCheck::kNone)) << code;
  }
  Weights scales(DType::kF8E8M0, {2, 3}, 127);
  scales.Set<uint8_t>(4, 191);
  const auto checked = CheckWeightValues(Stored(good, scales, good), WeightCheck::kAuto);
  EXPECT_EQ(checked.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(
      checked.error().message,
      "tensor layers.0.ffn.experts.0.w1.scale (in b) has the scale 2^64 (code 191) at element "
      "4 of 6; scales of matrices must be within 2^-63 to 2^63");
}

TEST(CheckWeightValues, ProgressEndsAtTheTotalOfWhatWasRead) {
  const Weights plain(DType::kBF16, {300});
  const Weights expert(DType::kF8E8M0, {50}, 127);
  const Weights table(DType::kF8E4M3, {10});
  uint64_t last_done = 0;
  uint64_t last_total = 1;
  const ProgressFn watch = [&](std::string_view, uint64_t done, uint64_t total) {
    EXPECT_GE(done, last_done);
    last_done = done;
    last_total = total;
  };
  ASSERT_TRUE(CheckWeightValues(Stored(plain, expert, table), WeightCheck::kAuto, watch));
  EXPECT_EQ(last_done, 660u);
  EXPECT_EQ(last_total, 660u);
}

}  // namespace
}  // namespace deepinfer
