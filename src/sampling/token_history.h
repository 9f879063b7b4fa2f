// What penalties have to know of a request: which tokens its prompt and output hold, how often.
// Source: spec algorithms sections 4.1 and 4.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace deepinfer {

// Memory grows with the number of distinct tokens, never with the vocabulary. Drafts are appended
// while their rows are sampled and rolled back when they are rejected. A value; not thread-safe.
class TokenHistory {
 public:
  struct Entry {
    int32_t token;
    int32_t output_count;
    bool in_prompt;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  TokenHistory() = default;
  // Only the repetition penalty looks at the prompt; without it the prompt may be left out.
  explicit TokenHistory(std::span<const int32_t> prompt);

  // Room for `tokens` more output tokens without an allocation.
  void Reserve(int64_t tokens);
  // One more output token (>= 0). Constant time, amortised.
  void Append(int32_t token);
  // Forgets the last `count` output tokens, 0 <= count <= output_length(). The state is then the
  // same as if they had never been appended. Constant time a token.
  void Rollback(int64_t count);

  int64_t output_length() const { return static_cast<int64_t>(output_.size()); }
  // Every distinct token of prompt and output once, in the order of first appearance.
  std::span<const Entry> entries() const { return entries_; }

 private:
  // Index into slots_ where `token` is or would be put.
  size_t FindSlot(int32_t token) const;
  Entry& FindOrAdd(int32_t token);
  void Rehash(size_t slot_count);

  std::vector<Entry> entries_;
  std::vector<int32_t> output_;
  // Open addressing, linear probing: an index into entries_ plus 1, or 0. A power of two, at most
  // half full.
  std::vector<uint32_t> slots_;
};

}  // namespace deepinfer
