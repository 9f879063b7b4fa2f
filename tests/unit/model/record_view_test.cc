#include "model/v41/record_view.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer::model::v41 {
namespace {

constexpr int64_t kDim = 64;

std::vector<float> Values(void (*unpack)(const uint8_t* const*, int64_t, int64_t, bf16*),
                          std::vector<uint8_t> record) {
  const uint8_t* records[] = {record.data()};
  std::vector<bf16> out(kDim);
  unpack(records, 1, kDim, out.data());
  std::vector<float> values;
  for (const bf16 v : out) values.push_back(ToFloat(v));
  return values;
}

// Records are codes first, then scales (spec model-v41 section 4); 0x38 is 1 in e4m3.
TEST(RecordView, WindowValuesAreE4M3TimesThePowerOfTwoOfTheirGroup) {
  std::vector<uint8_t> record(kDim + 2, 0x38);
  record[1] = 0xb8;
  record[kDim] = 128;
  record[kDim + 1] = 126;
  const std::vector<float> values = Values(UnpackWindow, record);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[31], 2.0f);
  EXPECT_EQ(values[32], 0.5f);
}

TEST(RecordView, KvValuesAreNibblesEvenFirstTimesTheE4M3ScaleOfTheirSixteen) {
  std::vector<uint8_t> record(kDim / 2 + 4, 0xf2);  // 1, then -6
  for (int g = 0; g < 4; ++g) record[kDim / 2 + g] = static_cast<uint8_t>(0x38 + 8 * g);
  const std::vector<float> values = Values(UnpackKvEntries, record);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -6.0f);
  EXPECT_EQ(values[16], 2.0f);
  EXPECT_EQ(values[63], -48.0f);
}

TEST(RecordView, IndexKeysAreNibblesTimesThePowerOfTwoOfTheirGroup) {
  std::vector<uint8_t> record(kDim / 2 + 2, 0x1f);  // -6, then 0.5
  record[kDim / 2] = 127;
  record[kDim / 2 + 1] = 129;
  const std::vector<float> values = Values(UnpackIndexKeys, record);
  EXPECT_EQ(values[0], -6.0f);
  EXPECT_EQ(values[1], 0.5f);
  EXPECT_EQ(values[32], -24.0f);
  EXPECT_EQ(values[63], 2.0f);
}

}  // namespace
}  // namespace deepinfer::model::v41
