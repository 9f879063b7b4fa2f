#include "grammar/unicode_property.h"

#include <utf8proc.h>

#include <array>
#include <utility>
#include <vector>

namespace deepinfer::grammar {
namespace {

struct Category {
  std::string_view short_name;
  std::string_view long_name;
};
// By utf8proc's numbers.
constexpr std::array<Category, 30> kCategories = {{
    {"Cn", "Unassigned"},
    {"Lu", "Uppercase_Letter"},
    {"Ll", "Lowercase_Letter"},
    {"Lt", "Titlecase_Letter"},
    {"Lm", "Modifier_Letter"},
    {"Lo", "Other_Letter"},
    {"Mn", "Nonspacing_Mark"},
    {"Mc", "Spacing_Mark"},
    {"Me", "Enclosing_Mark"},
    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},
    {"No", "Other_Number"},
    {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},
    {"Ps", "Open_Punctuation"},
    {"Pe", "Close_Punctuation"},
    {"Pi", "Initial_Punctuation"},
    {"Pf", "Final_Punctuation"},
    {"Po", "Other_Punctuation"},
    {"Sm", "Math_Symbol"},
    {"Sc", "Currency_Symbol"},
    {"Sk", "Modifier_Symbol"},
    {"So", "Other_Symbol"},
    {"Zs", "Space_Separator"},
    {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"},
    {"Cc", "Control"},
    {"Cf", "Format"},
    {"Cs", "Surrogate"},
    {"Co", "Private_Use"},
}};
static_assert(UTF8PROC_CATEGORY_LU == 1 && UTF8PROC_CATEGORY_ND == 9 &&
              UTF8PROC_CATEGORY_PO == 18 && UTF8PROC_CATEGORY_CO == 29);

constexpr std::array<Category, 7> kGroups = {{{"L", "Letter"},
                                              {"M", "Mark"},
                                              {"N", "Number"},
                                              {"P", "Punctuation"},
                                              {"S", "Symbol"},
                                              {"Z", "Separator"},
                                              {"C", "Other"}}};

// The set of every category, found once.
const std::array<CharSet, 30>& CategorySets() {
  static const std::array<CharSet, 30> sets = [] {
    std::array<CharSet, 30> built;
    uint32_t first = 0;
    int category = utf8proc_category(0);
    for (uint32_t c = 1; c <= kMaxCodePoint + 1; ++c) {
      const int next =
          c <= kMaxCodePoint ? utf8proc_category(static_cast<utf8proc_int32_t>(c)) : -1;
      if (next == category) continue;
      built[static_cast<size_t>(category)].Add(first, c - 1);
      first = c;
      category = next;
    }
    return built;
  }();
  return sets;
}

std::optional<CharSet> CategorySet(std::string_view name) {
  for (size_t i = 0; i < kCategories.size(); ++i) {
    if (name == kCategories[i].short_name || name == kCategories[i].long_name) {
      return CategorySets()[i];
    }
  }
  for (const Category& group : kGroups) {
    if (name != group.short_name && name != group.long_name) continue;
    CharSet set;
    for (size_t i = 0; i < kCategories.size(); ++i) {
      if (kCategories[i].short_name[0] == group.short_name[0]) set.Add(CategorySets()[i]);
    }
    return set;
  }
  if (name == "LC" || name == "Cased_Letter") {
    return CategorySets()[1].Union(CategorySets()[2]).Union(CategorySets()[3]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<CharSet> UnicodeProperty(std::string_view name) {
  for (const std::string_view prefix : {"gc=", "General_Category="}) {
    if (name.starts_with(prefix)) return CategorySet(name.substr(prefix.size()));
  }
  if (name == "Any") return CharSet::Any();
  if (name == "ASCII") return CharSet{{0, 0x7f}};
  if (name == "Assigned") return CategorySets()[0].Complement();
  if (name == "White_Space") {
    return CharSet{{9, 13},          {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                   {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                   {0x205f, 0x205f}, {0x3000, 0x3000}};
  }
  return CategorySet(name);
}

CharSet AddCaseVariants(const CharSet& set) {
  struct Pair {
    uint32_t code_point;
    uint32_t other;
  };
  static const std::vector<Pair> pairs = [] {
    std::vector<Pair> found;
    for (uint32_t c = 0; c < 0x20000; ++c) {
      const auto code_point = static_cast<utf8proc_int32_t>(c);
      for (const utf8proc_int32_t other :
           {utf8proc_tolower(code_point), utf8proc_toupper(code_point)}) {
        if (other == code_point) continue;
        found.push_back({c, static_cast<uint32_t>(other)});
        found.push_back({static_cast<uint32_t>(other), c});
      }
    }
    return found;
  }();
  CharSet result = set;
  for (const Pair& pair : pairs) {
    if (set.Contains(pair.code_point) && !result.Contains(pair.other)) {
      result.Add(pair.other, pair.other);
    }
  }
  return result;
}

}  // namespace deepinfer::grammar
