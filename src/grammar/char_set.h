// Sets of Unicode code points.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace deepinfer::grammar {

inline constexpr uint32_t kMaxCodePoint = 0x10ffff;

struct SymbolRange {
  uint32_t first;
  uint32_t last;  // inclusive

  friend bool operator==(const SymbolRange&, const SymbolRange&) = default;
};

// A set of code points as sorted, disjoint ranges that do not touch. Surrogates (U+D800 to U+DFFF)
// may be members, but no text holds one: UTF-8 lowering skips them.
class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<SymbolRange> ranges);
  static CharSet Of(uint32_t code_point) { return {{code_point, code_point}}; }
  // Every code point but the surrogates.
  static CharSet Any();

  // first <= last <= kMaxCodePoint. Linear in the ranges unless it appends at the end.
  void Add(uint32_t first, uint32_t last);
  void Add(const CharSet& other);

  CharSet Union(const CharSet& other) const;
  CharSet Intersect(const CharSet& other) const;
  CharSet Minus(const CharSet& other) const { return Intersect(other.Complement()); }
  // Any() minus this set.
  CharSet Complement() const;

  bool Contains(uint32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  std::span<const SymbolRange> ranges() const& { return ranges_; }
  std::span<const SymbolRange> ranges() const&& = delete;  // would outlive the set

  friend bool operator==(const CharSet&, const CharSet&) = default;

 private:
  std::vector<SymbolRange> ranges_;
};

}  // namespace deepinfer::grammar
