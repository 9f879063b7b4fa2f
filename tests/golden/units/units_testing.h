// The unit vectors and the comparisons that goldens/README.md asks for.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/golden/support/golden_file.h"
#include "tests/support/test_kernels.h"

namespace deepinfer::golden {

inline const GoldenFile& Units() {
  static const GoldenFile file(DataDir() / "units/units.safetensors");
  return file;
}

inline std::vector<bf16> UnitBf16(const std::string& name) { return Units().Raw<bf16>(name); }
inline std::vector<float> UnitF32(const std::string& name) { return Units().Raw<float>(name); }
inline std::vector<uint8_t> UnitBytes(const std::string& name) {
  return Units().Raw<uint8_t>(name);
}

using kernels::Kernels;

// Bit equality. goldens/README.md allows one bf16 step on a few elements to whoever sums in another
// order; the reference back end needs none of it on these vectors.
inline void ExpectBf16(const std::vector<bf16>& got, const std::string& name) {
  const std::vector<bf16> want = UnitBf16(name);
  ASSERT_EQ(got.size(), want.size()) << name;
  int differing = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || ++differing > 3) continue;
    ADD_FAILURE() << name << " at element " << i << ": " << ToFloat(got[i]) << ", golden "
                  << ToFloat(want[i]);
  }
  EXPECT_EQ(differing, 0) << name << ": of " << got.size() << " elements";
}

inline void ExpectF32(const std::vector<float>& got, const std::string& name, float absolute) {
  const std::vector<float> want = UnitF32(name);
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], absolute) << name << " at element " << i;
  }
}

}  // namespace deepinfer::golden
