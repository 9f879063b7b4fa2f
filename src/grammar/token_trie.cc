#include "grammar/token_trie.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.bytes, a.token) < std::pair(b.bytes, b.token);
  });
  nodes_.push_back({0, 0, 0, 0});
  std::vector<uint32_t> path = {0};  // the nodes of the last entry's prefixes
  std::string_view last;
  for (const Entry& entry : entries) {
    size_t shared = 0;
    const size_t limit = std::min(last.size(), entry.bytes.size());
    while (shared < limit && last[shared] == entry.bytes[shared]) ++shared;
    while (path.size() > shared + 1) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
    for (size_t i = shared; i < entry.bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(tokens_.size()), static_cast<uint16_t>(i + 1),
                        static_cast<uint8_t>(entry.bytes[i])});
    }
    tokens_.push_back(entry.token);
    max_depth_ = std::max(max_depth_, static_cast<uint32_t>(entry.bytes.size()));
    last = entry.bytes;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(
      {static_cast<uint32_t>(nodes_.size()) + 1, static_cast<uint32_t>(tokens_.size()), 0, 0});
  nodes_.shrink_to_fit();
  tokens_.shrink_to_fit();
}

uint32_t TokenTrie::Child(uint32_t index, uint8_t byte) const {
  for (uint32_t child = index + 1; child < nodes_[index].end; child = nodes_[child].end) {
    if (nodes_[child].byte == byte) return child;
  }
  return 0;
}

}  // namespace deepinfer::grammar
