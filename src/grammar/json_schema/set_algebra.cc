#include "grammar/json_schema/set_algebra.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {
namespace {

// More alternatives of one type than this are refused.
constexpr size_t kMaxCases = 1000;

template <typename T>
void Append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

size_t SizeOf(const ObjectCase& object) {
  return 4 + object.named.size() + object.required.size() + object.others.size();
}

}  // namespace

ValueSet ValueSet::Everything() {
  ValueSet set;
  set.null = set.no = set.yes = true;
  set.numbers = NumberSet::All();
  set.strings.emplace_back();
  set.arrays.emplace_back();
  set.objects.emplace_back();
  return set;
}

Status SetAlgebra::CheckCases(size_t cases) {
  if (cases <= kMaxCases) return {};
  return MakeError(ErrorCode::kResourceExhausted,
                   "the schema combines its parts in more than {} ways", kMaxCases);
}

Result<std::optional<StringCase>> SetAlgebra::IntersectStrings(const StringCase& a,
                                                               const StringCase& b) {
  StringCase both;
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  if (both.min > both.max) return std::optional<StringCase>();
  if (a.words == nullptr && b.words == nullptr) return std::optional(both);
  Dfa words = a.words != nullptr ? *a.words : *b.words;
  if (a.words != nullptr && b.words != nullptr && a.words != b.words) {
    DI_ASSIGN_OR_RETURN(words, deepinfer::grammar::Intersect(*a.words, *b.words, budget_));
  }
  DI_ASSIGN_OR_RETURN(words, WithLength(words, both.min, both.max, budget_));
  if (words.empty()) return std::optional<StringCase>();
  return std::optional(StringCase{std::make_shared<const Dfa>(std::move(words)), 0, kUnbounded});
}

std::optional<ArrayCase> SetAlgebra::IntersectArrays(const ArrayCase& a, const ArrayCase& b) {
  ArrayCase both;
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  if (both.min > both.max) return std::nullopt;
  const size_t size = std::max(a.prefix.size(), b.prefix.size());
  for (size_t i = 0; i < size; ++i) {
    both.prefix.push_back(terms_.All(a.ItemAt(i), b.ItemAt(i)));
  }
  both.rest = terms_.All(a.rest, b.rest);
  both.contains = a.contains;
  Append(both.contains, b.contains);
  both.unique = a.unique != nullptr ? a.unique : b.unique;
  both.evaluated = std::max(a.evaluated, b.evaluated);
  both.evaluated_terms = a.evaluated_terms;
  Append(both.evaluated_terms, b.evaluated_terms);
  return both;
}

ObjectCase SetAlgebra::IntersectObjects(const ObjectCase& a, const ObjectCase& b) {
  ObjectCase both = a;
  for (const auto& [name, term] : b.named) {
    const auto [entry, is_new] = both.named.emplace(name, term);
    if (!is_new) entry->second = terms_.All(entry->second, term);
  }
  for (const auto& [name, term] : b.required) {
    const auto [entry, is_new] = both.required.emplace(name, term);
    if (!is_new) entry->second = terms_.All(entry->second, term);
  }
  Append(both.others, b.others);
  Append(both.some, b.some);
  Append(both.order, b.order);
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  both.min_from = a.min >= b.min ? a.min_from : b.min_from;
  both.evaluated.Add(b.evaluated);
  return both;
}

Result<bool> SetAlgebra::IsEmptyArray(const ArrayCase& array) {
  if (array.min > array.max) return true;
  for (size_t i = 0; i < array.min; ++i) {
    DI_ASSIGN_OR_RETURN(const bool empty, is_empty_(array.ItemAt(i)));
    if (empty) return true;
    if (i >= array.prefix.size()) break;
  }
  for (const ArrayCase::Contains& contains : array.contains) {
    if (contains.min > contains.max) return true;
    if (contains.min == 0) continue;
    if (uint64_t{contains.from} + contains.min > array.max) return true;
    DI_ASSIGN_OR_RETURN(bool empty, is_empty_(contains.term));
    if (!empty && array.prefix.size() <= contains.from) {
      DI_ASSIGN_OR_RETURN(empty, is_empty_(terms_.All(contains.term, array.rest)));
    }
    if (empty) return true;
  }
  return false;
}

Result<bool> SetAlgebra::IsEmptyObject(const ObjectCase& object) {
  if (object.min > object.max || object.required.size() > object.max) return true;
  for (const auto& [name, term] : object.required) {
    std::vector<Term> parts = {term};
    const auto named = object.named.find(name);
    if (named != object.named.end()) parts.push_back(named->second);
    for (const ObjectCase::Names& names : object.others) {
      if (names.names.Contains(name)) parts.push_back(names.term);
    }
    DI_ASSIGN_OR_RETURN(const bool empty, is_empty_(terms_.All(std::move(parts))));
    if (empty) return true;
  }
  return false;
}

Result<std::vector<StringCase>> SetAlgebra::Product(const std::vector<StringCase>& a,
                                                    const std::vector<StringCase>& b) {
  std::vector<StringCase> result;
  for (const StringCase& left : a) {
    for (const StringCase& right : b) {
      DI_ASSIGN_OR_RETURN(std::optional<StringCase> both, IntersectStrings(left, right));
      if (both) result.push_back(std::move(*both));
      DI_RETURN_IF_ERROR(CheckCases(result.size()));
      DI_RETURN_IF_ERROR(budget_.Charge(4));
    }
  }
  return result;
}

Result<std::vector<ArrayCase>> SetAlgebra::Product(const std::vector<ArrayCase>& a,
                                                   const std::vector<ArrayCase>& b) {
  std::vector<ArrayCase> result;
  for (const ArrayCase& left : a) {
    for (const ArrayCase& right : b) {
      DI_RETURN_IF_ERROR(budget_.Charge(4 + left.prefix.size() + right.prefix.size()));
      std::optional<ArrayCase> both = IntersectArrays(left, right);
      if (!both) continue;
      DI_ASSIGN_OR_RETURN(const bool empty, IsEmptyArray(*both));
      if (!empty) result.push_back(std::move(*both));
      DI_RETURN_IF_ERROR(CheckCases(result.size()));
    }
  }
  return result;
}

Result<std::vector<ObjectCase>> SetAlgebra::Product(const std::vector<ObjectCase>& a,
                                                    const std::vector<ObjectCase>& b) {
  std::vector<ObjectCase> result;
  for (const ObjectCase& left : a) {
    for (const ObjectCase& right : b) {
      DI_RETURN_IF_ERROR(budget_.Charge(SizeOf(left) + SizeOf(right)));
      ObjectCase both = IntersectObjects(left, right);
      DI_ASSIGN_OR_RETURN(const bool empty, IsEmptyObject(both));
      if (!empty) result.push_back(std::move(both));
      DI_RETURN_IF_ERROR(CheckCases(result.size()));
    }
  }
  return result;
}

Result<ValueSet> SetAlgebra::Intersect(const ValueSet& a, const ValueSet& b) {
  ValueSet both;
  both.null = a.null && b.null;
  both.no = a.no && b.no;
  both.yes = a.yes && b.yes;
  DI_ASSIGN_OR_RETURN(both.numbers, a.numbers.Intersect(b.numbers, budget_));
  DI_ASSIGN_OR_RETURN(both.strings, Product(a.strings, b.strings));
  DI_ASSIGN_OR_RETURN(both.arrays, Product(a.arrays, b.arrays));
  DI_ASSIGN_OR_RETURN(both.objects, Product(a.objects, b.objects));
  return both;
}

Result<ValueSet> SetAlgebra::Union(ValueSet a, const ValueSet& b) {
  a.null |= b.null;
  a.no |= b.no;
  a.yes |= b.yes;
  DI_ASSIGN_OR_RETURN(a.numbers, a.numbers.Union(b.numbers, budget_));
  Append(a.strings, b.strings);
  Append(a.arrays, b.arrays);
  Append(a.objects, b.objects);
  DI_RETURN_IF_ERROR(CheckCases(std::max({a.strings.size(), a.arrays.size(), a.objects.size()})));
  return a;
}

Result<std::vector<StringCase>> SetAlgebra::ComplementString(const StringCase& string) {
  std::vector<StringCase> result;
  if (string.words == nullptr) {
    if (string.min > 0) result.push_back({nullptr, 0, string.min - 1});
    if (string.max != kUnbounded) result.push_back({nullptr, string.max + 1, kUnbounded});
    return result;
  }
  DI_ASSIGN_OR_RETURN(Dfa words, Difference(StarDfa(CharSet::Any()), *string.words, budget_));
  if (!words.empty()) result.push_back({std::make_shared<const Dfa>(std::move(words))});
  return result;
}

Result<std::vector<ArrayCase>> SetAlgebra::ComplementArray(const ArrayCase& array) {
  if (array.unique != nullptr) {
    return document_.Refuse(*array.unique, "uniqueItems", "its negation compares items");
  }
  std::vector<ArrayCase> result;
  const auto add = [&]() -> ArrayCase& { return result.emplace_back(); };
  if (array.min > 0) add().max = array.min - 1;
  if (array.max != kUnbounded) add().min = array.max + 1;
  for (size_t i = 0; i < array.prefix.size(); ++i) {
    const Term wrong = terms_.Not(array.prefix[i]);
    if (wrong == kNothing) continue;
    ArrayCase& item = add();
    item.prefix.assign(i, kEverything);
    item.prefix.push_back(wrong);
    item.min = static_cast<uint32_t>(i) + 1;
  }
  const uint32_t size = static_cast<uint32_t>(array.prefix.size());
  if (const Term wrong = terms_.Not(array.rest); wrong != kNothing) {
    add().contains.push_back({wrong, size, 1, kUnbounded});
  }
  for (const ArrayCase::Contains& contains : array.contains) {
    if (contains.min > 0) {
      add().contains.push_back({contains.term, contains.from, 0, contains.min - 1});
    }
    if (contains.max != kUnbounded) {
      add().contains.push_back({contains.term, contains.from, contains.max + 1, kUnbounded});
    }
  }
  return result;
}

std::vector<ObjectCase> SetAlgebra::ComplementObject(const ObjectCase& object) {
  std::vector<ObjectCase> result;
  const auto add = [&]() -> ObjectCase& { return result.emplace_back(); };
  if (object.min > 0) add().max = object.min - 1;
  if (object.max != kUnbounded) {
    add().min = object.max + 1;
    result.back().min_from = object.min_from;
  }
  for (const auto& [name, term] : object.named) {
    const Term wrong = terms_.Not(term);
    if (wrong != kNothing) add().required.emplace(name, wrong);
  }
  for (const auto& [name, term] : object.required) add().named.emplace(name, terms_.Not(term));
  for (const ObjectCase::Names& names : object.others) {
    const Term wrong = terms_.Not(names.term);
    if (wrong != kNothing) add().some.push_back({names.names, wrong});
  }
  for (const ObjectCase::Names& names : object.some) {
    add().others.push_back({names.names, terms_.Not(names.term)});
  }
  return result;
}

Result<ValueSet> SetAlgebra::Complement(const ValueSet& set) {
  ValueSet result = ValueSet::Everything();
  result.null = !set.null;
  result.no = !set.no;
  result.yes = !set.yes;
  DI_ASSIGN_OR_RETURN(result.numbers, set.numbers.Complement(budget_));
  for (const StringCase& string : set.strings) {
    DI_ASSIGN_OR_RETURN(const auto outside, ComplementString(string));
    DI_ASSIGN_OR_RETURN(result.strings, Product(result.strings, outside));
  }
  for (const ArrayCase& array : set.arrays) {
    if (result.arrays.empty()) break;
    DI_ASSIGN_OR_RETURN(const auto outside, ComplementArray(array));
    DI_ASSIGN_OR_RETURN(result.arrays, Product(result.arrays, outside));
  }
  for (const ObjectCase& object : set.objects) {
    DI_ASSIGN_OR_RETURN(result.objects, Product(result.objects, ComplementObject(object)));
  }
  return result;
}

Result<bool> SetAlgebra::IsEmptySet(const ValueSet& set) {
  if (set.null || set.no || set.yes || !set.numbers.empty() || !set.strings.empty()) return false;
  for (const ArrayCase& array : set.arrays) {
    DI_ASSIGN_OR_RETURN(const bool empty, IsEmptyArray(array));
    if (!empty) return false;
  }
  for (const ObjectCase& object : set.objects) {
    DI_ASSIGN_OR_RETURN(const bool empty, IsEmptyObject(object));
    if (!empty) return false;
  }
  return true;
}

Result<Dfa> SetAlgebra::WordsOf(const std::vector<StringCase>& cases) {
  std::vector<Dfa> parts;
  for (const StringCase& string : cases) {
    if (string.words != nullptr) {
      parts.push_back(*string.words);
      continue;
    }
    DI_ASSIGN_OR_RETURN(Dfa words,
                        WithLength(StarDfa(CharSet::Any()), string.min, string.max, budget_));
    parts.push_back(std::move(words));
  }
  if (parts.empty()) return Dfa();
  return deepinfer::grammar::Union(parts, budget_);
}

}  // namespace deepinfer::grammar
