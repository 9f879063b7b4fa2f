// A toy model of ../shared/goldens, loaded, and the comparisons its tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "loader/checkpoint.h"
#include "model/v41/model.h"
#include "tests/golden/support/golden_file.h"
#include "tests/support/test_kernels.h"

namespace deepinfer::golden {

// Skips the running test where the toys are absent, or fails it where they are required.
#define DEEPINFER_NEEDS_TOYS()                                                               \
  do {                                                                                       \
    if (!std::filesystem::exists(::deepinfer::golden::ToysDir() / "toy-a")) {                \
      const char* required = std::getenv("DEEPINFER_REQUIRE_GOLDENS");                       \
      if (required != nullptr && std::string_view(required) == "1") {                        \
        FAIL() << "golden toys are required and absent";                                     \
      }                                                                                      \
      GTEST_SKIP() << "golden toys are absent: models/nano's reference outputs are checked " \
                      "instead";                                                             \
    }                                                                                        \
  } while (false)

struct Toy {
  explicit Toy(const std::string& name) : dir(ToysDir() / name) {
    auto opened = Checkpoint::Open(dir / "checkpoint");
    if (!opened) throw std::runtime_error(opened.error().message);
    checkpoint = std::move(*opened);
    const auto wide = GoldenFile(dir / "engram.safetensors").Raw<int64_t>("token_map");
    auto created = model::v41::Model::Create(checkpoint->config(), *checkpoint,
                                             std::vector<int32_t>(wide.begin(), wide.end()),
                                             kernels::Kernels());
    if (!created) throw std::runtime_error(created.error().message);
    model = std::move(*created);
  }

  GoldenFile File(const std::string& name) const {
    return GoldenFile(dir / (name + ".safetensors"));
  }
  std::vector<int32_t> Prompt(const std::string& name) const {
    const auto wide = File("prompts").Raw<int64_t>(name);
    return {wide.begin(), wide.end()};
  }

  std::filesystem::path dir;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<model::v41::Model> model;
};

// Logits of every token of `tokens`, continuing `state`. [tokens, vocab]
inline std::vector<float> RunForward(const model::v41::Model& model,
                                     model::v41::ForwardContext& context,
                                     model::v41::SequenceState& state,
                                     std::span<const int32_t> tokens, int64_t decoder_start = 0,
                                     int64_t logits_rows = -1,
                                     std::span<const uint8_t> is_image = {}) {
  std::vector<float> logits;
  const model::v41::SequenceChunk chunk{
      .state = &state,
      .tokens = tokens,
      .decoder_start = decoder_start,
      .logits_rows = logits_rows < 0 ? std::ssize(tokens) : logits_rows,
      .is_image = is_image};
  const Status status = model.Forward(context, {&chunk, 1}, logits);
  EXPECT_TRUE(status) << status.error().message;
  return logits;
}

// How rows of logits agree (goldens/README.md, "How to use them in tests").
struct RowAgreement {
  double median = 0, max = 0;  // relative L2 error a row
  double top1 = 0;             // share of rows with the same best token
  size_t clear_misses = 0;     // rows whose best differs though the reference's gap exceeds `gap`
};

inline RowAgreement CompareRows(std::span<const float> got, std::span<const float> want,
                                size_t vocab, double gap = 0.5) {
  RowAgreement out;
  std::vector<double> errors;
  const size_t rows = want.size() / vocab;
  size_t equal = 0;
  for (size_t r = 0; r < rows; ++r) {
    const auto g = got.subspan(r * vocab, vocab), w = want.subspan(r * vocab, vocab);
    double error = 0, power = 0;
    for (size_t v = 0; v < vocab; ++v) {
      error += (double{g[v]} - w[v]) * (double{g[v]} - w[v]);
      power += double{w[v]} * w[v];
    }
    errors.push_back(std::sqrt(error / power));
    const auto best_got = std::max_element(g.begin(), g.end()) - g.begin();
    const auto best_want = std::max_element(w.begin(), w.end()) - w.begin();
    float second = -INFINITY;
    for (size_t v = 0; v < vocab; ++v) {
      if (static_cast<ptrdiff_t>(v) != best_want) second = std::max(second, w[v]);
    }
    equal += best_got == best_want;
    out.clear_misses += best_got != best_want && w[best_want] - second > gap;
  }
  std::sort(errors.begin(), errors.end());
  out.median = errors[errors.size() / 2];
  out.max = errors.back();
  out.top1 = static_cast<double>(equal) / static_cast<double>(rows);
  return out;
}

}  // namespace deepinfer::golden
