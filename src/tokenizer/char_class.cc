#include "tokenizer/char_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace deepinfer {
namespace {

struct ClassRange {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};

// Characters assigned by Unicode 15.1 and 16.0, for a utf8proc that knows only 15.0 (Debian 12).
constexpr ClassRange kAssignedSinceUnicode15[] = {
    {0x0897, 0x0897, CharClass::kMark},          {0x1b4e, 0x1b4f, CharClass::kPunctuation},
    {0x1b7f, 0x1b7f, CharClass::kPunctuation},   {0x1c89, 0x1c8a, CharClass::kLetter},
    {0x2427, 0x2429, CharClass::kSymbol},        {0x2ffc, 0x2fff, CharClass::kSymbol},
    {0x31e4, 0x31e5, CharClass::kSymbol},        {0x31ef, 0x31ef, CharClass::kSymbol},
    {0xa7cb, 0xa7cd, CharClass::kLetter},        {0xa7da, 0xa7dc, CharClass::kLetter},
    {0x105c0, 0x105f3, CharClass::kLetter},      {0x10d40, 0x10d49, CharClass::kNumber},
    {0x10d4a, 0x10d65, CharClass::kLetter},      {0x10d69, 0x10d6d, CharClass::kMark},
    {0x10d6e, 0x10d6e, CharClass::kPunctuation}, {0x10d6f, 0x10d85, CharClass::kLetter},
    {0x10d8e, 0x10d8f, CharClass::kSymbol},      {0x10ec2, 0x10ec4, CharClass::kLetter},
    {0x10efc, 0x10efc, CharClass::kMark},        {0x11380, 0x11389, CharClass::kLetter},
    {0x1138b, 0x1138b, CharClass::kLetter},      {0x1138e, 0x1138e, CharClass::kLetter},
    {0x11390, 0x113b5, CharClass::kLetter},      {0x113b7, 0x113b7, CharClass::kLetter},
    {0x113b8, 0x113c0, CharClass::kMark},        {0x113c2, 0x113c2, CharClass::kMark},
    {0x113c5, 0x113c5, CharClass::kMark},        {0x113c7, 0x113ca, CharClass::kMark},
    {0x113cc, 0x113d0, CharClass::kMark},        {0x113d1, 0x113d1, CharClass::kLetter},
    {0x113d2, 0x113d2, CharClass::kMark},        {0x113d3, 0x113d3, CharClass::kLetter},
    {0x113d4, 0x113d5, CharClass::kPunctuation}, {0x113d7, 0x113d8, CharClass::kPunctuation},
    {0x113e1, 0x113e2, CharClass::kMark},        {0x116d0, 0x116e3, CharClass::kNumber},
    {0x11bc0, 0x11be0, CharClass::kLetter},      {0x11be1, 0x11be1, CharClass::kPunctuation},
    {0x11bf0, 0x11bf9, CharClass::kNumber},      {0x11f5a, 0x11f5a, CharClass::kMark},
    {0x13460, 0x143fa, CharClass::kLetter},      {0x16100, 0x1611d, CharClass::kLetter},
    {0x1611e, 0x1612f, CharClass::kMark},        {0x16130, 0x16139, CharClass::kNumber},
    {0x16d40, 0x16d6c, CharClass::kLetter},      {0x16d6d, 0x16d6f, CharClass::kPunctuation},
    {0x16d70, 0x16d79, CharClass::kNumber},      {0x18cff, 0x18cff, CharClass::kLetter},
    {0x1cc00, 0x1ccef, CharClass::kSymbol},      {0x1ccf0, 0x1ccf9, CharClass::kNumber},
    {0x1cd00, 0x1ceb3, CharClass::kSymbol},      {0x1e5d0, 0x1e5ed, CharClass::kLetter},
    {0x1e5ee, 0x1e5ef, CharClass::kMark},        {0x1e5f0, 0x1e5f0, CharClass::kLetter},
    {0x1e5f1, 0x1e5fa, CharClass::kNumber},      {0x1e5ff, 0x1e5ff, CharClass::kPunctuation},
    {0x1f8b2, 0x1f8bb, CharClass::kSymbol},      {0x1f8c0, 0x1f8c1, CharClass::kSymbol},
    {0x1fa89, 0x1fa89, CharClass::kSymbol},      {0x1fa8f, 0x1fa8f, CharClass::kSymbol},
    {0x1fabe, 0x1fabe, CharClass::kSymbol},      {0x1fac6, 0x1fac6, CharClass::kSymbol},
    {0x1fadc, 0x1fadc, CharClass::kSymbol},      {0x1fadf, 0x1fadf, CharClass::kSymbol},
    {0x1fae9, 0x1fae9, CharClass::kSymbol},      {0x1fbcb, 0x1fbef, CharClass::kSymbol},
    {0x2ebf0, 0x2ee5d, CharClass::kLetter},
};

CharClass ClassOfUnassigned(uint32_t code_point) {
  const ClassRange* range = std::lower_bound(
      std::begin(kAssignedSinceUnicode15), std::end(kAssignedSinceUnicode15), code_point,
      [](const ClassRange& candidate, uint32_t value) { return candidate.last < value; });
  const bool found = range != std::end(kAssignedSinceUnicode15) && range->first <= code_point;
  return found ? range->char_class : CharClass::kOther;
}

constexpr bool IsWhiteSpaceControl(uint32_t code_point) {
  return (code_point >= 0x09 && code_point <= 0x0d) || code_point == 0x85;
}

constexpr CharClass ClassOfAscii(char c) {
  if (c == '\r' || c == '\n') return CharClass::kNewline;
  if (c == ' ' || IsWhiteSpaceControl(static_cast<uint32_t>(c))) return CharClass::kSpace;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  if (c < ' ' || c == 0x7f) return CharClass::kOther;
  constexpr char kSymbols[] = {'$', '+', '<', '=', '>', '^', '`', '|', '~'};
  for (const char symbol : kSymbols) {
    if (c == symbol) return CharClass::kSymbol;
  }
  return CharClass::kPunctuation;
}

constexpr std::array<CharClass, 128> MakeAsciiClasses() {
  std::array<CharClass, 128> classes{};
  for (int c = 0; c < 128; ++c) classes[c] = ClassOfAscii(static_cast<char>(c));
  return classes;
}

}  // namespace

constinit const std::array<CharClass, 128> kAsciiClass = MakeAsciiClasses();

CharClass ClassOfCodePoint(uint32_t code_point) {
  if (code_point < 128) return kAsciiClass[code_point];
  if (code_point > 0x10ffff) return CharClass::kOther;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return CharClass::kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharClass::kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return CharClass::kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::kSpace;
    case UTF8PROC_CATEGORY_CN:
      return ClassOfUnassigned(code_point);
    default:
      return IsWhiteSpaceControl(code_point) ? CharClass::kSpace : CharClass::kOther;
  }
}

}  // namespace deepinfer
