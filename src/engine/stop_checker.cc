#include "engine/stop_checker.h"

#include <algorithm>
#include <map>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

bool IsUtf8(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Step step = ReadUtf8(text, pos);
    if (step.status != Utf8Status::kValid) return false;
    pos += step.length;
  }
  return true;
}

}  // namespace

Result<StopStrings> StopStrings::Create(std::span<const std::string> stops) {
  StopStrings out;
  std::vector<std::map<uint8_t, int32_t>> tree(1);
  out.nodes_.resize(1);
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty() || !IsUtf8(stops[i])) {
      return MakeError(ErrorCode::kInvalidArgument, "string {} of stop is {}", i,
                       stops[i].empty() ? "empty" : "not valid UTF-8");
    }
    int32_t node = 0;
    for (const char c : stops[i]) {
      const int32_t added = static_cast<int32_t>(tree.size());
      const auto [child, is_new] =
          tree[static_cast<size_t>(node)].emplace(static_cast<uint8_t>(c), added);
      const int32_t depth = out.nodes_[static_cast<size_t>(node)].depth + 1;
      node = child->second;
      if (!is_new) continue;
      tree.emplace_back();
      out.nodes_.push_back({.depth = depth});
    }
    int32_t& stop = out.nodes_[static_cast<size_t>(node)].stop;
    if (stop < 0) stop = static_cast<int32_t>(i);
    out.lengths_.push_back(static_cast<int32_t>(stops[i].size()));
  }
  for (size_t node = 0; node < tree.size(); ++node) {
    out.nodes_[node].first_child = static_cast<int32_t>(out.children_.size());
    out.nodes_[node].child_count = static_cast<int32_t>(tree[node].size());
    for (const auto& [byte, child] : tree[node]) out.children_.push_back({byte, child});
  }
  for (const auto& [byte, child] : tree[0]) out.root_children_[byte] = child;
  out.LinkSuffixes();
  return out;
}

// Breadth first, so that a node's suffixes are linked before it.
void StopStrings::LinkSuffixes() {
  std::vector<int32_t> queue = {0};
  for (size_t done = 0; done < queue.size(); ++done) {
    const Node parent = nodes_[static_cast<size_t>(queue[done])];
    for (int32_t i = 0; i < parent.child_count; ++i) {
      const Child& child = children_[static_cast<size_t>(parent.first_child + i)];
      Node& node = nodes_[static_cast<size_t>(child.node)];
      if (parent.depth > 0) node.failure = Step(parent.failure, child.byte);
      if (node.stop < 0) node.stop = nodes_[static_cast<size_t>(node.failure)].stop;
      queue.push_back(child.node);
    }
  }
}

int32_t StopStrings::FindChild(int32_t node, uint8_t byte) const {
  const Node& parent = nodes_[static_cast<size_t>(node)];
  const auto begin = children_.begin() + parent.first_child;
  const auto end = begin + parent.child_count;
  const auto found = std::lower_bound(
      begin, end, byte, [](const Child& child, uint8_t wanted) { return child.byte < wanted; });
  return found != end && found->byte == byte ? found->node : -1;
}

int32_t StopStrings::Step(int32_t node, uint8_t byte) const {
  for (; node != 0; node = nodes_[static_cast<size_t>(node)].failure) {
    const int32_t child = FindChild(node, byte);
    if (child >= 0) return child;
  }
  return root_children_[byte];
}

bool StopChecker::Push(std::string_view text, std::string& out) {
  if (stops_->empty()) {
    out.append(text);
    return false;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    node_ = stops_->Step(node_, static_cast<uint8_t>(text[i]));
    stop_ = stops_->nodes_[static_cast<size_t>(node_)].stop;
    if (stop_ < 0) continue;
    held_.append(text.substr(0, i + 1));
    const size_t length = static_cast<size_t>(stops_->lengths_[static_cast<size_t>(stop_)]);
    out.append(held_, 0, held_.size() - length);
    held_.clear();
    return true;
  }
  held_.append(text);
  const size_t keep = static_cast<size_t>(stops_->nodes_[static_cast<size_t>(node_)].depth);
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopChecker::Finish(std::string& out) {
  out.append(held_);
  held_.clear();
  node_ = 0;
  stop_ = -1;
}

}  // namespace deepinfer
