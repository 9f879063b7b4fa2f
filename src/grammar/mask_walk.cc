#include "grammar/mask_walk.h"

#include <algorithm>
#include <memory>

namespace deepinfer::grammar {

std::vector<StateMask::Exit>& ExitWalk::Bundle(size_t depth) {
  while (bundles_.size() <= depth) {
    bundles_.push_back(std::make_unique<std::vector<StateMask::Exit>>());
  }
  bundles_[depth]->clear();
  return *bundles_[depth];
}

bool ExitWalk::Run(Chart& chart, uint32_t frame, const StateMask& state_mask, uint64_t max_work,
                   std::span<uint32_t> mask) {
  chart_ = &chart;
  trie_ = state_mask.trie;
  mask_ = mask;
  max_work_ = max_work;
  depth_ = 0;
  const Chart::Mark mark = chart.mark();
  chart.BeginSet();
  const uint32_t begin = chart.size();
  chart.Return(frame);
  const bool finished = chart.size() == begin || Walk(begin, state_mask.exits);
  chart.CutBack(mark);
  return finished;
}

// `bundle`: trie nodes by the byte that leads to them; the set from `begin` on is what precedes it.
bool ExitWalk::Walk(uint32_t begin, std::span<const StateMask::Exit> bundle) {
  Chart& chart = *chart_;
  chart.Close(begin);
  const uint32_t end = chart.size();
  const ByteSet first = chart.FirstBytes(begin, end);
  const Chart::Mark mark = chart.mark();
  for (size_t i = 0; i < bundle.size();) {
    const uint8_t byte = bundle[i].byte;
    size_t group_end = i + 1;
    while (group_end < bundle.size() && bundle[group_end].byte == byte) ++group_end;
    const auto group = bundle.subspan(i, group_end - i);
    i = group_end;
    if (!first.Contains(byte)) continue;
    chart.CutBack(mark);
    if (!chart.Step(begin, end, byte)) continue;
    if (chart.work() > max_work_) return false;
    std::vector<StateMask::Exit>& next = Bundle(depth_);
    for (const StateMask::Exit& exit : group) {
      for (const int32_t token : trie_->tokens(exit.node)) {
        mask_[static_cast<uint32_t>(token) / 32] |= uint32_t{1} << (token & 31);
      }
      if (chart.size() == mark.items) continue;  // only the text's end is left
      trie_->ForEachChild(
          exit.node, [&](uint32_t child) { next.push_back({trie_->node(child).byte, child}); });
    }
    if (next.empty()) continue;
    if (group.size() > 1) {
      std::sort(next.begin(), next.end(),
                [](const auto& a, const auto& b) { return a.byte < b.byte; });
    }
    ++depth_;
    const bool finished = Walk(mark.items, next);
    --depth_;
    if (!finished) return false;
  }
  return true;
}

}  // namespace deepinfer::grammar
