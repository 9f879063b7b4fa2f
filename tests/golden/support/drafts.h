// Drafts of one sequence, with the logits that they were chosen from.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/v41/model.h"

namespace deepinfer::golden {

struct BlockDraft {
  std::vector<int32_t> tokens;
  std::vector<float> confidence;
  std::vector<float> logits;  // [block, vocab], after the Markov correction
  friend bool operator==(const BlockDraft&, const BlockDraft&) = default;
};

// Greedy drafts of several sequences as one batch, `drafts` of each (0: the whole block).
inline std::vector<BlockDraft> DraftBlocks(const model::v41::Model& model,
                                           model::v41::ForwardContext& context,
                                           std::vector<model::v41::DraftInput> inputs) {
  const int64_t block = model.config().draft_block_size, vocab = model.config().vocab_size;
  std::vector<BlockDraft> out(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].drafts == 0) inputs[i].drafts = block;
    out[i].logits.resize(static_cast<size_t>(inputs[i].drafts * vocab));
  }
  const auto sampler = [&](const model::v41::DraftDraw& draw) {
    std::copy(draw.logits.begin(), draw.logits.end(),
              out[static_cast<size_t>(draw.sequence)].logits.begin() + draw.step * vocab);
    return model::v41::GreedyDraft(draw);
  };
  model::v41::DraftOutput drafts;
  const Status status = model.Draft(context, inputs, sampler, drafts);
  EXPECT_TRUE(status) << status.error().message;
  for (size_t i = 0; i < inputs.size() && status; ++i) {
    const auto first = static_cast<ptrdiff_t>(i) * block, count = drafts.counts[i];
    out[i].tokens.assign(drafts.tokens.begin() + first, drafts.tokens.begin() + first + count);
    out[i].confidence.assign(drafts.confidence.begin() + first,
                             drafts.confidence.begin() + first + count);
  }
  return out;
}

inline BlockDraft DraftBlock(const model::v41::Model& model, model::v41::ForwardContext& context,
                             const model::v41::SequenceState& state, int32_t next) {
  return DraftBlocks(model, context, {{.state = &state, .next = next}})[0];
}

}  // namespace deepinfer::golden
