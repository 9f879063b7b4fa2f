// Memory grows with the context as the KV formula says, and by nothing else.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "engine/runtime.h"

namespace deepinfer {
namespace {

using model::v41::ForwardContext;
using model::v41::SequenceChunk;
using model::v41::SequenceState;

// Anonymous resident bytes of this process; weights are file pages and do not count.
int64_t AnonymousBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stoll(line.substr(8)) * 1024;
  }
  return -1;
}

TEST(Memory, ContextCostsTheKvFormulaAndNoMore) {
  const auto loaded = Runtime::Load(std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano",
                                    {CheckWeights::kNone});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto& model = (*loaded)->model();
  ForwardContext context(1);
  const auto state = model.NewSequence();
  std::vector<float> logits;
  const auto extend = [&](int64_t tokens) {
    for (int64_t done = 0; done < tokens; done += 128) {
      std::vector<int32_t> chunk(128);
      for (int64_t i = 0; i < 128; ++i) {
        chunk[i] = static_cast<int32_t>(300 + (state->length() + i) * 37 % 7000);
      }
      const SequenceChunk share{.state = state.get(), .tokens = chunk, .decoder_start = 1 << 20};
      ASSERT_TRUE(model.Forward(context, {&share, 1}, logits));
    }
  };
  extend(4096);  // scratch memory has its size from here on: 2^18 index scores
  const int64_t before = AnonymousBytes();
  const size_t kv_before = state->global_kv_bytes(), fixed_before = state->fixed_bytes();
  if (before < 0) GTEST_SKIP() << "this system does not tell resident bytes";
  extend(3072);
  const auto formula = static_cast<int64_t>(3072 * model.config().kv_bytes_per_token());
  // Caches grow in whole blocks of 256 entries.
  EXPECT_EQ(static_cast<int64_t>(state->global_kv_bytes() - kv_before), formula);
  EXPECT_EQ(state->fixed_bytes(), fixed_before);
  // Half a MiB for what is rounded to pages: block tables, candidate masks, the allocator.
  EXPECT_LE(AnonymousBytes() - before, formula + (1 << 19));
}

}  // namespace
}  // namespace deepinfer
