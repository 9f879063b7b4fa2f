#include "grammar/member_sets.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "grammar/automaton.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kInlineMembers = 48;

bool Has(const std::vector<uint64_t>& bits, uint32_t member) {
  return (bits[member / 64] >> (member % 64)) & 1;
}

}  // namespace

MemberSets::MemberSets(std::vector<Member> members, uint32_t min, uint32_t max)
    : members_(std::move(members)), min_(min), max_(max) {
  required_.assign(std::max<size_t>(1, (members_.size() + 63) / 64), 0);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].required) required_[i / 64] |= uint64_t{1} << (i % 64);
    any_repeatable_ |= members_[i].repeatable;
  }
  counts_ = min_ > 0 || max_ != kUnbounded;
  // The empty set is number 0, so that a register of 0 is empty in either form.
  if (members_.size() > kInlineMembers) Store(Bits(required_.size(), 0));
}

MemberSets::Bits MemberSets::Load(uint64_t reg) const {
  if (members_.size() <= kInlineMembers) return {reg & kSetMask};
  const std::lock_guard lock(mutex_);
  return *interned_[reg & kSetMask];
}

uint64_t MemberSets::Store(const Bits& bits) const {
  if (members_.size() <= kInlineMembers) return bits[0];
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = numbers_.emplace(bits, interned_.size());
  if (is_new) interned_.push_back(&entry->first);
  return entry->second;
}

uint32_t MemberSets::MissingRequired(const Bits& bits) const {
  uint32_t missing = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    missing += static_cast<uint32_t>(std::popcount(required_[i] & ~bits[i]));
  }
  return missing;
}

bool MemberSets::Fits(uint32_t count, uint32_t required_after) const {
  return max_ == kUnbounded || uint64_t{count} + 1 + required_after <= max_;
}

bool MemberSets::Select(uint32_t member, uint64_t& reg) const {
  Bits bits = Load(reg);
  if (Has(bits, member) && !members_[member].repeatable) return false;
  if (!members_[member].repeatable || members_[member].required) {
    bits[member / 64] |= uint64_t{1} << (member % 64);
  }
  uint32_t count = Count(reg);
  if (counts_) {
    if (!Fits(count, MissingRequired(bits))) return false;
    // Without an upper limit only the way to min matters.
    count = max_ == kUnbounded ? std::min(count + 1, min_) : count + 1;
  }
  reg = Store(bits) | uint64_t{count} << kCountShift;
  return true;
}

bool MemberSets::MaySelectMore(uint64_t reg) const {
  const Bits bits = Load(reg);
  const uint32_t count = Count(reg);
  const uint32_t missing = MissingRequired(bits);
  if (missing > 0) return true;  // every selection so far left room for it
  if (counts_ && !Fits(count, 0)) return false;
  if (any_repeatable_) return true;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (!Has(bits, i)) return true;
  }
  return false;
}

bool MemberSets::MayLeave(uint64_t reg) const {
  return MissingRequired(Load(reg)) == 0 && Count(reg) >= (counts_ ? min_ : 0);
}

size_t MemberSets::bytes_used() const {
  const std::lock_guard lock(mutex_);
  return sizeof(*this) + members_.size() * sizeof(Member) +
         interned_.size() * (required_.size() * 8 + 96);
}

}  // namespace deepinfer::grammar
