// RMSNorm and rotary embedding against the release's.
#include "model/v41/rope_table.h"
#include "tests/golden/units/units_testing.h"

namespace deepinfer::golden {
namespace {

using model::v41::RopeTable;

TEST(NormUnits, RmsNormIsTheReleases) {
  ThreadPool pool(1);
  const std::vector<bf16> x = UnitBf16("rmsnorm.x"), w = UnitBf16("rmsnorm.w");
  std::vector<bf16> y(x.size());
  Kernels().rms_norm(pool, {x.data(), 8, 96, 96}, w.data(), 1e-20f, y.data());
  ExpectBf16(y, "rmsnorm.y");
}

ModelConfig RopeConfig(int64_t rope_dim, double theta, double compress_theta, double factor,
                       int64_t context) {
  ModelConfig config;
  config.rope_dim = rope_dim;
  config.rope_theta = theta;
  config.compress_rope_theta = compress_theta;
  config.rope_scaling = {factor, 32, 1, context};
  return config;
}

void ExpectTable(const ModelConfig& config, bool compressed, const std::string& positions_name,
                 const std::string& name) {
  const std::vector<int64_t> positions = Units().Raw<int64_t>(positions_name);
  std::vector<float> cos(positions.size() * config.rope_dim / 2), sin(cos.size());
  RopeTable(config, compressed).Fill(positions, cos.data(), sin.data());
  ExpectF32(cos, name + ".cos", 1e-6f);
  ExpectF32(sin, name + ".sin", 1e-6f);
}

TEST(RopeUnits, ReleaseTablesAgreeUpToTheLastPosition) {
  const ModelConfig config = RopeConfig(64, 10000, 160000, 16, 65536);
  ExpectTable(config, false, "rope.positions", "rope.plain");
  ExpectTable(config, true, "rope.positions", "rope.yarn");
}

TEST(RopeUnits, ToyTablesAgree) {
  const ModelConfig toy_a = RopeConfig(32, 10000, 160000, 16, 64);
  ExpectTable(toy_a, false, "rope.toy_positions", "rope.toy_a_plain");
  ExpectTable(toy_a, true, "rope.toy_positions", "rope.toy_a_yarn");
  const ModelConfig toy_b = RopeConfig(64, 5000, 40000, 4, 1024);
  ExpectTable(toy_b, false, "rope.toy_positions", "rope.toy_b_plain");
  ExpectTable(toy_b, true, "rope.toy_positions", "rope.toy_b_yarn");
}

TEST(RopeUnits, RotationIsTheReleasesBothWays) {
  ThreadPool pool(1);
  for (const std::string name : {"rope.plain", "rope.yarn"}) {
    const std::vector<float> cos = UnitF32(name + ".cos"), sin = UnitF32(name + ".sin");
    for (const bool inverse : {false, true}) {
      std::vector<bf16> x = UnitBf16(name + ".x");
      Kernels().rope(pool, x.data(), 14, 3, 64, 64, cos.data(), sin.data(), inverse);
      ExpectBf16(x, name + (inverse ? ".inverse" : ".forward"));
    }
  }
}

}  // namespace
}  // namespace deepinfer::golden
