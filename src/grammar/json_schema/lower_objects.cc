// Objects: members that are listed by name, and classes of names for the others.
#include <algorithm>
#include <array>

#include "grammar/json_schema/schema_lowering.h"
#include "grammar/json_schema/words.h"

namespace deepinfer::grammar {
namespace {

// More cases than this, of which names have what some member must have, are refused.
constexpr size_t kMaxOpenCases = 200;

std::set<std::string> ListedNames(const ObjectCase& object) {
  std::set<std::string> names;
  for (const auto& [name, term] : object.named) names.insert(name);
  for (const auto& [name, term] : object.required) names.insert(name);
  for (const auto* list : {&object.others, &object.some}) {
    for (const ObjectCase::Names& entry : *list) {
      names.insert(entry.names.names.begin(), entry.names.names.end());
    }
  }
  return names;
}

}  // namespace

SchemaLowering::MemberWriter SchemaLowering::JsonWriter() {
  MemberWriter writer;
  writer.named = [this](const std::string& name, Term value) -> Result<NodeId> {
    const NodeId key = ir_.Literal("\"" + KeyText(name) + "\":");
    return ir_.Sequence(std::array{key, after_colon_, Value(value)});
  };
  writer.unlisted = [this](Dfa names, Term value) -> Result<NodeId> {
    if (escaped_) {
      const CharSet others = CharSet::Of(*escaped_).Complement();
      DI_ASSIGN_OR_RETURN(const Dfa writable, EncodeCanonicalString(StarDfa(others), budget_));
      DI_ASSIGN_OR_RETURN(names, Intersect(names, writable, budget_));
    }
    return ir_.Sequence(std::array{ir_.Literal("\""), ir_.Regular(std::move(names)),
                                   ir_.Literal("\":"), after_colon_, Value(value)});
  };
  writer.separator = comma_;
  return writer;
}

Result<std::vector<Unordered>> SchemaLowering::Members(Term term, const MemberWriter& writer) {
  DI_ASSIGN_OR_RETURN(const ValueSet* set, sets_.SetOf(term));
  std::vector<Unordered> result;
  const std::vector<ObjectCase> objects = set->objects;
  for (const ObjectCase& object : objects) {
    DI_ASSIGN_OR_RETURN(std::vector<Unordered> cases, ObjectMembers(object, writer));
    for (Unordered& members : cases) result.push_back(std::move(members));
  }
  return result;
}

Result<std::vector<Unordered>> SchemaLowering::ObjectMembers(const ObjectCase& object,
                                                             const MemberWriter& writer) {
  const std::set<std::string> names = ListedNames(object);
  DI_ASSIGN_OR_RETURN(const std::vector<OpenCase> cases, SettleSome(object, names));
  std::vector<Unordered> result;
  for (const OpenCase& open : cases) {
    DI_RETURN_IF_ERROR(budget_.Charge(10 * (names.size() + 1)));
    Unordered unordered;
    unordered.separator = writer.separator;
    unordered.min = open.object.min;
    unordered.max = open.object.max;
    unordered.ordered = options_.key_order == JsonSchemaOptions::KeyOrder::kDeclared;
    DI_RETURN_IF_ERROR(AddListed(open.object, names, writer, unordered));
    DI_ASSIGN_OR_RETURN(std::vector<Atom> atoms, Atoms(open.object, open.present, names));
    DI_RETURN_IF_ERROR(RequireAtoms(open, atoms));
    for (Atom& atom : atoms) {
      DI_ASSIGN_OR_RETURN(const NodeId node, writer.unlisted(std::move(atom.names), atom.term));
      unordered.members.push_back({node, atom.required, writer.repeats_unlisted});
    }
    DI_RETURN_IF_ERROR(CheckMinimum(open.object, unordered));
    const size_t required = static_cast<size_t>(
        std::count_if(unordered.members.begin(), unordered.members.end(),
                      [](const Unordered::Member& member) { return member.required; }));
    unordered.min = std::max(unordered.min, static_cast<uint32_t>(required));
    if (unordered.min > unordered.max) continue;
    unordered.max = std::min(unordered.max, kUnbounded);
    result.push_back(std::move(unordered));
  }
  return result;
}

Status SchemaLowering::AddListed(const ObjectCase& object, const std::set<std::string>& names,
                                 const MemberWriter& writer, Unordered& unordered) {
  std::vector<std::string> ordered;
  std::set<std::string> rest = names;
  for (const std::string& name : object.order) {
    if (rest.erase(name) != 0) ordered.push_back(name);
  }
  ordered.insert(ordered.end(), rest.begin(), rest.end());
  for (const std::string& name : ordered) {
    std::vector<Term> parts;
    const auto named = object.named.find(name);
    if (named != object.named.end()) parts.push_back(named->second);
    const auto required = object.required.find(name);
    const bool is_required = required != object.required.end();
    if (is_required) parts.push_back(required->second);
    for (const ObjectCase::Names& entry : object.others) {
      if (entry.names.Contains(name)) parts.push_back(entry.term);
    }
    const Term term = sets_.terms().All(std::move(parts));
    if (!is_required) {
      DI_ASSIGN_OR_RETURN(const bool empty, sets_.IsEmpty(term));
      if (empty) continue;
    }
    DI_ASSIGN_OR_RETURN(const NodeId node, writer.named(name, term));
    unordered.members.push_back({node, is_required, /*repeatable=*/false});
  }
  return {};
}

// A text may repeat a name that is not listed, and the object then has fewer members than the
// text: a minimum holds anyway as long as it asks for one such member at most.
Status SchemaLowering::CheckMinimum(const ObjectCase& object, const Unordered& unordered) {
  uint64_t required = 0;
  bool open = false;
  for (const Unordered::Member& member : unordered.members) {
    required += member.required ? 1 : 0;
    open |= member.repeatable;
  }
  if (!open || object.min <= required + 1) return {};
  const JsonNode& schema = object.min_from != nullptr ? *object.min_from : sets_.document().root();
  return sets_.document().Refuse(
      schema, "minProperties",
      fmt::format("{} members, of which only {} must have certain names: texts may repeat the "
                  "others",
                  object.min, required));
}

Result<std::vector<SchemaLowering::OpenCase>> SchemaLowering::SettleSome(
    const ObjectCase& object, const std::set<std::string>& names) {
  std::vector<OpenCase> cases(1);
  cases[0].object = object;
  for (const ObjectCase::Names& some : object.some) {
    std::vector<OpenCase> next;
    bool unlisted = some.names.complement || !some.names.patterns.empty();
    if (unlisted && some.term != kEverything) {
      DI_ASSIGN_OR_RETURN(const std::vector<Atom> atoms, Atoms(object, {some.names}, names));
      unlisted = false;
      for (const Atom& atom : atoms) {
        DI_ASSIGN_OR_RETURN(const Dfa inside, some.names.UnlistedIn(atom.names, budget_));
        if (inside.empty()) continue;
        DI_ASSIGN_OR_RETURN(const bool never,
                            sets_.IsEmpty(sets_.terms().All(atom.term, some.term)));
        if (never) continue;
        DI_ASSIGN_OR_RETURN(const bool always, sets_.IsEmpty(sets_.terms().All(
                                                   atom.term, sets_.terms().Not(some.term))));
        if (!always) {
          return sets_.document().Refuse(
              sets_.document().root(), "not",
              "it asks for some member of any name with a certain value, and texts may repeat "
              "names");
        }
        unlisted = true;
      }
    }
    for (const OpenCase& open : cases) {
      for (const std::string& name : names) {
        if (!some.names.Contains(name)) continue;
        OpenCase& chosen = next.emplace_back(open);
        const auto [entry, is_new] = chosen.object.required.emplace(name, some.term);
        if (!is_new) entry->second = sets_.terms().All(entry->second, some.term);
      }
      if (unlisted) next.emplace_back(open).present.push_back(some.names);
    }
    if (next.size() > kMaxOpenCases) {
      return MakeError(ErrorCode::kResourceExhausted,
                       "negations of objects combine in more than {} ways", kMaxOpenCases);
    }
    cases = std::move(next);
  }
  return cases;
}

// Splits the names that are not listed by what their values must be.
Result<std::vector<SchemaLowering::Atom>> SchemaLowering::Atoms(
    const ObjectCase& object, const std::vector<NameSet>& present,
    const std::set<std::string>& names) {
  std::vector<Term> for_all;
  std::vector<const ObjectCase::Names*> with_patterns;
  for (const ObjectCase::Names& entry : object.others) {
    if (!entry.names.patterns.empty()) {
      with_patterns.push_back(&entry);
    } else if (entry.names.complement) {
      for_all.push_back(entry.term);
    }
  }
  const Term base = sets_.terms().All(std::move(for_all));
  DI_ASSIGN_OR_RETURN(const bool closed, sets_.IsEmpty(base));
  if (closed) return std::vector<Atom>();
  std::vector<std::string> bodies;
  for (const std::string& name : names) bodies.push_back(CanonicalString(name));
  DI_ASSIGN_OR_RETURN(const Dfa listed, WordsDfa(std::move(bodies), budget_));
  DI_ASSIGN_OR_RETURN(Dfa unlisted, Difference(CanonicalBodies(), listed, budget_));
  std::vector<Atom> atoms;
  atoms.push_back({std::move(unlisted), base});
  for (const ObjectCase::Names* entry : with_patterns) {
    DI_RETURN_IF_ERROR(SplitAtoms(entry->names, entry->term, atoms));
  }
  for (const NameSet& set : present) DI_RETURN_IF_ERROR(SplitAtoms(set, kEverything, atoms));
  std::vector<Atom> kept;
  for (Atom& atom : atoms) {
    DI_ASSIGN_OR_RETURN(const bool empty, sets_.IsEmpty(atom.term));
    if (empty) continue;
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Atom& other) {
      return present.empty() && other.term == atom.term;
    });
    if (same == kept.end()) {
      kept.push_back(std::move(atom));
    } else {
      const std::array<Dfa, 2> both = {std::move(same->names), std::move(atom.names)};
      DI_ASSIGN_OR_RETURN(same->names, Union(both, budget_));
    }
  }
  return kept;
}

Status SchemaLowering::SplitAtoms(const NameSet& set, Term term, std::vector<Atom>& atoms) {
  std::vector<Atom> split;
  for (Atom& atom : atoms) {
    DI_ASSIGN_OR_RETURN(Dfa inside, set.UnlistedIn(atom.names, budget_));
    DI_ASSIGN_OR_RETURN(Dfa outside, Difference(atom.names, inside, budget_));
    if (!inside.empty()) {
      split.push_back({std::move(inside), sets_.terms().All(atom.term, term)});
    }
    if (!outside.empty()) split.push_back({std::move(outside), atom.term});
  }
  atoms = std::move(split);
  return {};
}

Status SchemaLowering::RequireAtoms(const OpenCase& open, std::vector<Atom>& atoms) {
  for (const NameSet& set : open.present) {
    Atom* chosen = nullptr;
    for (Atom& atom : atoms) {
      DI_ASSIGN_OR_RETURN(const Dfa inside, set.UnlistedIn(atom.names, budget_));
      if (inside.empty()) continue;
      if (chosen != nullptr) {
        return MakeError(ErrorCode::kResourceExhausted,
                         "a negation asks for a member of one of several patterns of names");
      }
      chosen = &atom;
    }
    if (chosen == nullptr) {
      // No such name is allowed: an atom that nothing can fill.
      atoms.push_back({CanonicalBodies(), kNothing, true});
    } else {
      chosen->required = true;
    }
  }
  return {};
}

}  // namespace deepinfer::grammar
