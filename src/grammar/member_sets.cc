#include "grammar/member_sets.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "grammar/automaton.h"

namespace deepinfer::grammar {
namespace {

bool Has(std::span<const uint64_t> bits, uint32_t member) {
  return (bits[member / 64] >> (member % 64)) & 1;
}

}  // namespace

MemberSets::MemberSets(std::vector<Member> members, uint32_t min, uint32_t max, bool ordered)
    : members_(std::move(members)), min_(min), max_(max), ordered_(ordered) {
  required_.assign(std::max<size_t>(1, (members_.size() + 63) / 64), 0);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].required) required_[i / 64] |= uint64_t{1} << (i % 64);
    any_repeatable_ |= members_[i].repeatable;
  }
  counts_ = min_ > 0 || max_ != kUnbounded;
  // The empty set is number 0, so that a register of 0 is empty in either form.
  if (!is_inline()) Intern(Bits(required_.size(), 0));
}

template <typename Use>
bool MemberSets::WithBits(uint64_t reg, const Use& use) const {
  if (is_inline()) {
    uint64_t word = reg & kSetMask;
    return use(std::span<uint64_t>(&word, 1));
  }
  Bits bits;
  {
    const std::lock_guard lock(mutex_);
    bits = *interned_[reg & kSetMask];
  }
  return use(std::span<uint64_t>(bits));
}

uint64_t MemberSets::Intern(std::span<const uint64_t> bits) const {
  if (is_inline()) return bits[0];
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = numbers_.emplace(Bits(bits.begin(), bits.end()), interned_.size());
  if (is_new) interned_.push_back(&entry->first);
  return entry->second;
}

bool MemberSets::IsInOrder(std::span<const uint64_t> bits, uint32_t member) const {
  for (size_t word = 0; word < bits.size(); ++word) {
    const uint32_t first = static_cast<uint32_t>(word) * 64;
    const uint64_t before = member >= first + 64 ? ~uint64_t{0}
                            : member <= first    ? 0
                                                 : (uint64_t{1} << (member - first)) - 1;
    const uint64_t own = member / 64 == word ? uint64_t{1} << (member % 64) : 0;
    if ((bits[word] & ~before & ~own) != 0) return false;
    if ((required_[word] & before & ~bits[word]) != 0) return false;
  }
  return true;
}

uint32_t MemberSets::MissingRequired(std::span<const uint64_t> bits) const {
  uint32_t missing = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    missing += static_cast<uint32_t>(std::popcount(required_[i] & ~bits[i]));
  }
  return missing;
}

bool MemberSets::Fits(uint32_t count, uint32_t required_after) const {
  return max_ == kUnbounded || uint64_t{count} + 1 + required_after <= max_;
}

bool MemberSets::ReachesMin(uint32_t count, uint32_t member) const {
  for (size_t later = member; later < members_.size(); ++later) {
    if (members_[later].repeatable) return true;
  }
  return count + (members_.size() - member) >= min_;
}

bool MemberSets::Select(uint32_t member, uint64_t& reg) const {
  return WithBits(reg, [&](std::span<uint64_t> bits) {
    const Member& kind = members_[member];
    if (!kind.repeatable && Has(bits, member)) return false;
    if (ordered_ && !IsInOrder(bits, member)) return false;
    if (!kind.repeatable || kind.required || ordered_)
      bits[member / 64] |= uint64_t{1} << (member % 64);
    uint32_t count = Count(reg);
    if (counts_) {
      if (!Fits(count, MissingRequired(bits))) return false;
      if (ordered_ && !ReachesMin(count, member)) return false;
      // Without an upper limit only the way to min matters.
      count = max_ == kUnbounded ? std::min(count + 1, min_) : count + 1;
    }
    reg = Intern(bits) | uint64_t{count} << kCountShift;
    return true;
  });
}

bool MemberSets::MaySelectMore(uint64_t reg) const {
  return WithBits(reg, [&](std::span<const uint64_t> bits) {
    if (MissingRequired(bits) > 0) return true;  // every selection so far left room for it
    if (counts_ && !Fits(Count(reg), 0)) return false;
    if (any_repeatable_ && !ordered_) return true;
    for (uint32_t i = 0; i < members_.size(); ++i) {
      if (Has(bits, i) && !members_[i].repeatable) continue;
      if (!ordered_ || IsInOrder(bits, i)) return true;
    }
    return false;
  });
}

bool MemberSets::MayLeave(uint64_t reg) const {
  return WithBits(reg, [&](std::span<const uint64_t> bits) {
    return MissingRequired(bits) == 0 && (!counts_ || Count(reg) >= min_);
  });
}

size_t MemberSets::bytes_used() const {
  const std::lock_guard lock(mutex_);
  return sizeof(*this) + members_.size() * sizeof(Member) +
         interned_.size() * (required_.size() * 8 + 96);
}

}  // namespace deepinfer::grammar
