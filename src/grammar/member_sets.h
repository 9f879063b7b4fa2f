// The register of unordered members: which ones were used, and how many in all.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace deepinfer::grammar {

// One Unordered node at run time. A register holds the count of members in its upper 16 bits
// (saturating where more does not matter) and below them the set: its bits where there are at most
// 48 members, else its number in an intern table. Thread-safe.
class MemberSets {
 public:
  struct Member {
    bool required;
    bool repeatable;
  };
  // min <= max; both at most kMaxCount, or max = ~0 for no limit.
  MemberSets(std::vector<Member> members, uint32_t min, uint32_t max, bool ordered);

  static constexpr uint32_t kMaxCount = 60'000;

  // Each returns whether the step is allowed; Select changes the register.
  bool Select(uint32_t member, uint64_t& reg) const;
  bool MaySelectMore(uint64_t reg) const;
  bool MayLeave(uint64_t reg) const;

  size_t bytes_used() const;

 private:
  using Bits = std::vector<uint64_t>;
  static constexpr int kCountShift = 48;
  static constexpr uint64_t kSetMask = (uint64_t{1} << kCountShift) - 1;
  static constexpr size_t kInlineMembers = 48;

  bool is_inline() const { return members_.size() <= kInlineMembers; }
  uint32_t Count(uint64_t reg) const { return static_cast<uint32_t>(reg >> kCountShift); }
  // Calls use(words of the set) and returns what it does. The words are a copy.
  template <typename Use>
  bool WithBits(uint64_t reg, const Use& use) const;
  uint64_t Intern(std::span<const uint64_t> bits) const;
  // Ordered members: whether the member comes after all that were used, and no required one is
  // passed over.
  bool IsInOrder(std::span<const uint64_t> bits, uint32_t member) const;
  // Whether so many members, this one and those after it suffice.
  bool ReachesMin(uint32_t count, uint32_t member) const;
  uint32_t MissingRequired(std::span<const uint64_t> bits) const;
  // Whether one more member, `required_after` required ones still to come, fits into max.
  bool Fits(uint32_t count, uint32_t required_after) const;

  const std::vector<Member> members_;
  const uint32_t min_;
  const uint32_t max_;
  const bool ordered_;
  Bits required_;
  bool any_repeatable_ = false;
  bool counts_ = false;  // whether the count decides anything

  mutable std::mutex mutex_;
  mutable std::map<Bits, uint64_t> numbers_;   // guarded by mutex_
  mutable std::vector<const Bits*> interned_;  // guarded by mutex_
};

}  // namespace deepinfer::grammar
