// Quantisers against the release's: every code, scale and rounded value, bit for bit.
#include "model/v41/record_view.h"
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

constexpr int64_t kDim = 128;

class QuantizeUnits : public ::testing::Test {
 protected:
  using Pack = void (*)(ThreadPool&, const bf16*, int64_t, int64_t, uint8_t* const*);
  using Unpack = void (*)(const uint8_t* const*, int64_t, int64_t, bf16*);

  // Packs NAME.x into records of codes, then scales, and compares both and the values they stand
  // for.
  void CheckRecords(const std::string& name, Pack pack, int64_t code_bytes, int64_t scale_bytes,
                    Unpack unpack) {
    const std::vector<bf16> x = UnitBf16(name + ".x");
    const int64_t rows = static_cast<int64_t>(x.size()) / kDim;
    std::vector<std::vector<uint8_t>> records(rows);
    std::vector<uint8_t*> pointers;
    for (auto& record : records) {
      record.resize(code_bytes + scale_bytes);
      pointers.push_back(record.data());
    }
    pack(pool_, x.data(), rows, kDim, pointers.data());
    const std::vector<uint8_t> codes = UnitBytes(name + ".codes");
    const std::vector<uint8_t> scales = UnitBytes(name + ".scale");
    ASSERT_EQ(static_cast<int64_t>(codes.size()), rows * code_bytes);
    ASSERT_EQ(static_cast<int64_t>(scales.size()), rows * scale_bytes);
    std::vector<uint8_t> got_codes, got_scales;
    for (const auto& record : records) {
      got_codes.insert(got_codes.end(), record.begin(), record.begin() + code_bytes);
      got_scales.insert(got_scales.end(), record.begin() + code_bytes, record.end());
    }
    EXPECT_EQ(got_codes, codes);
    EXPECT_EQ(got_scales, scales);
    std::vector<bf16> y(x.size());
    unpack(pointers.data(), rows, kDim, y.data());
    ExpectBf16(y, name + ".y");
  }

  ThreadPool pool_{1};
};

TEST_F(QuantizeUnits, Q8ActivationsHaveTheReleasesCodes) {
  const std::vector<bf16> x = UnitBf16("q8.x");
  const int64_t rows = static_cast<int64_t>(x.size()) / kDim;
  std::vector<uint8_t> codes(x.size()), scales(x.size() / 32);
  Kernels().quantize_q8(pool_, {x.data(), rows, kDim, kDim},
                        {codes.data(), scales.data(), rows, kDim});
  EXPECT_EQ(codes, UnitBytes("q8.codes"));
  EXPECT_EQ(scales, UnitBytes("q8.scale"));
}

TEST_F(QuantizeUnits, WindowRecordsHoldTheReleasesQ8) {
  CheckRecords("q8", Kernels().pack_window, kDim, kDim / 32, model::v41::UnpackWindow);
}

TEST_F(QuantizeUnits, KvRecordsHoldTheReleasesQ4e) {
  CheckRecords("q4e", Kernels().pack_kv, kDim / 2, kDim / 16, model::v41::UnpackKvEntries);
}

TEST_F(QuantizeUnits, IndexKeyRecordsHoldTheReleasesQ4u) {
  CheckRecords("q4u", Kernels().pack_index_key, kDim / 2, kDim / 32, model::v41::UnpackIndexKeys);
}

TEST_F(QuantizeUnits, Q4uInPlaceIsTheReleases) {
  std::vector<bf16> x = UnitBf16("q4u.x");
  Kernels().round_q4u(pool_, x.data(), static_cast<int64_t>(x.size()) / kDim, kDim);
  ExpectBf16(x, "q4u.y");
}

}  // namespace
}  // namespace deepinfer::golden
