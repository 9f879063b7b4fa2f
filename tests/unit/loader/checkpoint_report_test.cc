#include "loader/checkpoint_report.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "loader/checkpoint.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kSource = DEEPINFER_SOURCE_DIR;

CheckpointReport ReleaseReport() {
  const std::string text = ReadFile(kSource + "/tests/golden/data/release-config.json").value();
  return BuildCheckpointReport(ParseModelConfig(text).value(), {});
}

// Numbers of spec model-v41 sections 3 and 4, which come from the release's own files.
TEST(CheckpointReportTest, ReleaseTensorsAndBytesAreThoseOfItsShards) {
  const CheckpointReport report = ReleaseReport();
  EXPECT_FALSE(report.has_weights);
  EXPECT_EQ(report.total.tensors, 96085 - 259 - 4 - 3);  // without tower, aligner, image vectors
  std::map<std::string_view, KindTotal> dtypes;
  for (const TensorRow& tensor : report.tensors) {
    ++dtypes[DTypeName(tensor.dtype)].tensors;
    dtypes[DTypeName(tensor.dtype)].bytes += tensor.bytes;
  }
  const auto expect = [&](std::string_view dtype, int64_t tensors, int64_t bytes) {
    EXPECT_EQ(dtypes[dtype].tensors, tensors) << dtype;
    EXPECT_EQ(dtypes[dtype].bytes, bytes) << dtype;
  };
  expect("F32", 387, 169229128);
  expect("F8_E4M3", 357, 204015223296);
  expect("F8_E8M0", 47589, 23563015184);
  expect("I8", 47232, 278585671680);
  EXPECT_EQ(dtypes["BF16"].tensors, 520 - 266);
  EXPECT_LT(dtypes["BF16"].bytes, 3952883712);
}

TEST(CheckpointReportTest, ReleaseBytesByKindAndPerToken) {
  const CheckpointReport report = ReleaseReport();
  EXPECT_EQ(report.of(TensorKind::kRoutedExperts).bytes, 40 * int64_t{7219445760});
  EXPECT_EQ(report.of(TensorKind::kEngramTable).bytes, 202758032400);
  EXPECT_NEAR(static_cast<double>(report.of(TensorKind::kDraft).bytes), 7.93e9, 0.005e9);
  EXPECT_EQ(report.of(TensorKind::kEmbedding).bytes, int64_t{129280} * 5120 * 2);
  EXPECT_EQ(report.of(TensorKind::kOther).tensors, 0);
  EXPECT_EQ(report.active.routed_experts, 40 * int64_t{112803840});
  EXPECT_EQ(report.active.engram_rows, 2 * 24 * (256 + 8));
  EXPECT_EQ(report.active.embedding_row, 10240);
  int64_t plain_layer = 0;
  for (const TensorRow& tensor : report.tensors) {
    const bool layer3 = tensor.name.rfind("layers.3.", 0) == 0;
    if (layer3 && tensor.kind != TensorKind::kRoutedExperts) plain_layer += tensor.bytes;
  }
  EXPECT_EQ(plain_layer, 170055128);
}

TEST(CheckpointReportTest, ReleaseKvIs890BytesAToken) {
  const CheckpointReport report = ReleaseReport();
  EXPECT_EQ(report.kv_bytes_per_token, 890);
  ASSERT_EQ(report.kv_sources.size(), 4u);
  EXPECT_EQ(report.kv_sources[0].layer, 2);
  EXPECT_EQ(report.kv_sources[0].bytes_per_token(), 178);
  EXPECT_EQ(report.kv_sources[3].layer, 20);
  EXPECT_EQ(report.kv_sources[3].kv_entry_bytes, 288);
  EXPECT_EQ(report.kv_sources[3].index_entry_bytes, 68);
  EXPECT_EQ(report.window_bytes_per_sequence, 2703360);
  EXPECT_EQ(report.window_bytes_per_sequence + report.draft_window_bytes_per_sequence, 2906112);
  const std::string text = ReportText(report, false);
  EXPECT_THAT(text, HasSubstr("global KV: 890 B/token"));
  EXPECT_THAT(text, HasSubstr("vision tower; its tensors are not counted"));
  EXPECT_THAT(text, HasSubstr("202,758,032,400"));
}

TEST(CheckpointReportTest, ABareConfigIsEnough) {
  ScratchFolder scratch;
  fs::copy_file(kSource + "/tests/golden/data/release-config.json", scratch.path() / "config.json");
  const auto report = InspectCheckpoint(scratch.path(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->kv_bytes_per_token, 890);
  EXPECT_THAT(ReportText(*report, false), HasSubstr("no weight files"));
  fs::remove(scratch.path() / "config.json");
  EXPECT_EQ(InspectCheckpoint(scratch.path(), {}).error().code, ErrorCode::kNotFound);
}

TEST(CheckpointReportTest, TheShippedCheckpointIsReportedFromItsFiles) {
  const auto report = InspectCheckpoint(kSource + "/models/nano", {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->has_weights);
  EXPECT_EQ(report->num_shards, 4u);
  EXPECT_EQ(report->of(TensorKind::kOther).tensors, 0);
  int64_t sum = 0;
  for (const KindTotal& kind : report->kinds) sum += kind.bytes;
  EXPECT_EQ(sum, report->total.bytes);
  const Json index =
      Json::parse(ReadFile(kSource + "/models/nano/model.safetensors.index.json").value());
  EXPECT_EQ(sum, index["metadata"]["total_size"]);
  // Every tensor the contract names is there and of the bytes it asks for.
  const CheckpointReport expected = BuildCheckpointReport(report->config, {});
  EXPECT_EQ(report->active.token(), expected.active.token() + 12 * 24 * 4);  // bias_vl, optional
}

TEST(CheckpointReportTest, RenderingsHoldLayersTensorsAndValidJson) {
  const CheckpointReport report = InspectCheckpoint(kSource + "/models/nano", {}).value();
  const std::string text = ReportText(report, true);
  EXPECT_THAT(text, HasSubstr("layers.11.ffn.experts.23.w3.scale"));
  EXPECT_THAT(ReportText(report, false), Not(HasSubstr("layers.11.ffn.experts.23.w3.scale")));
  const Json json = Json::parse(ReportJson(report));
  EXPECT_EQ(json["layers"].size(), 12u);
  EXPECT_EQ(json["layers"][9]["index_source"], 9);
  EXPECT_EQ(json["layers"][9]["uses_candidates"], true);
  EXPECT_EQ(json["layers"][0]["kv_source"], nullptr);
  EXPECT_EQ(json["layers"][4]["engram"], 1);
  EXPECT_EQ(json["tensors"].size(), static_cast<size_t>(report.total.tensors));
  EXPECT_EQ(json["kv_bytes_per_token"], report.config.kv_bytes_per_token());
  EXPECT_EQ(json["bytes_by_kind"]["routed experts"]["bytes"],
            report.of(TensorKind::kRoutedExperts).bytes);
}

}  // namespace
}  // namespace deepinfer
