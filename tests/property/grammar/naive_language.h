// The language of a GrammarIr by definition: finite sets of words and prefixes up to a length,
// grown until nothing changes. Slow, and obviously right.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/ir.h"

namespace deepinfer::grammar {

class NaiveLanguage {
 public:
  // Words and prefixes of at most `limit` bytes.
  NaiveLanguage(const GrammarIr& ir, size_t limit)
      : ir_(ir), limit_(limit), rules_(ir.num_rules()) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (uint32_t rule = 0; rule < ir.num_rules(); ++rule) {
        const RuleId id = static_cast<RuleId>(rule);
        if (!ir.has_body(id)) continue;
        Sets sets = Of(ir.body(id));
        if (sets == rules_[rule]) continue;
        rules_[rule] = std::move(sets);
        changed = true;
      }
    }
    root_ = rules_[GrammarIr::Index(ir.root())];
  }

  bool IsWord(const std::string& text) const { return root_.words.contains(text); }
  bool IsPrefix(const std::string& text) const { return root_.prefixes.contains(text); }
  bool empty() const { return !root_.productive; }

 private:
  struct Sets {
    std::set<std::string> words;
    std::set<std::string> prefixes;  // of some word, of any length
    bool productive = false;         // has any word
    bool operator==(const Sets&) const = default;
  };

  Sets Of(NodeId id) const {
    const Node& node = ir_.node(id);
    switch (node.kind) {
      case NodeKind::kNothing:
        return {};
      case NodeKind::kEmpty:
        return Empty();
      case NodeKind::kLiteral:
        return Literal(std::string(ir_.literal(node)));
      case NodeKind::kChars: {
        Sets sets;
        for (const SymbolRange& range : ir_.chars(node).ranges()) {
          for (uint32_t c = range.first; c <= range.last; ++c) {  // ASCII only
            Merge(sets, Literal(std::string(1, static_cast<char>(c))));
          }
        }
        return sets;
      }
      case NodeKind::kRegular:
        return OfDfa(ir_.regular(node));
      case NodeKind::kSequence: {
        Sets sets = Empty();
        for (const NodeId child : node.children) sets = Concat(sets, Of(child));
        return sets;
      }
      case NodeKind::kChoice: {
        Sets sets;
        for (const NodeId child : node.children) Merge(sets, Of(child));
        return sets;
      }
      case NodeKind::kRepeat:
        return OfRepeat(Of(node.children[0]), node.min, node.max);
      case NodeKind::kRule:
        return rules_[node.index];
      case NodeKind::kUnordered:
        return OfUnordered(ir_.unordered(node));
    }
    return {};
  }

  static Sets Empty() { return {{""}, {""}, true}; }

  Sets Literal(const std::string& text) const {
    Sets sets;
    sets.productive = true;
    for (size_t n = 0; n <= std::min(limit_, text.size()); ++n) {
      sets.prefixes.insert(text.substr(0, n));
    }
    if (text.size() <= limit_) sets.words.insert(text);
    return sets;
  }

  static void Merge(Sets& into, const Sets& from) {
    into.words.insert(from.words.begin(), from.words.end());
    into.prefixes.insert(from.prefixes.begin(), from.prefixes.end());
    into.productive |= from.productive;
  }

  Sets Concat(const Sets& a, const Sets& b) const {
    Sets sets;
    if (!a.productive || !b.productive) return sets;
    sets.productive = true;
    sets.prefixes = a.prefixes;
    for (const std::string& head : a.words) {
      for (const std::string& tail : b.words) {
        if (head.size() + tail.size() <= limit_) sets.words.insert(head + tail);
      }
      for (const std::string& tail : b.prefixes) {
        if (head.size() + tail.size() <= limit_) sets.prefixes.insert(head + tail);
      }
    }
    return sets;
  }

  // Beyond limit_ + 1 copies of a word that is not empty nothing new fits.
  Sets OfRepeat(const Sets& body, uint32_t min, uint32_t max) const {
    if (!body.productive) return min == 0 ? Empty() : Sets();
    Sets power = Empty();
    Sets sets;
    const uint32_t most = std::min<uint32_t>(max, min + static_cast<uint32_t>(limit_) + 1);
    for (uint32_t copies = 0; copies <= most; ++copies) {
      if (copies >= min) Merge(sets, power);
      if (copies < most) power = Concat(power, body);
    }
    return sets;
  }

  Sets OfDfa(const Dfa& dfa) const {
    Sets sets;
    sets.productive = !dfa.empty();
    std::vector<std::pair<uint32_t, std::string>> pending = {{0, ""}};
    while (!pending.empty()) {
      const auto [state, text] = pending.back();
      pending.pop_back();
      if (sets.productive) sets.prefixes.insert(text);
      if (dfa.accepting(state)) sets.words.insert(text);
      if (text.size() == limit_) continue;
      for (const Edge& edge : dfa.edges(state)) {
        for (uint32_t c = edge.first; c <= edge.last; ++c) {
          pending.emplace_back(edge.target, text + static_cast<char>(c));
        }
      }
    }
    return sets;
  }

  // Whether a choice of members, made so far as `used` and `count`, can still be completed.
  bool CanFinish(const Unordered& all, const std::vector<int>& used, uint32_t count,
                 const std::vector<Sets>& members) const {
    bool done = count >= all.min && count <= all.max;
    for (size_t i = 0; i < used.size(); ++i) {
      if (all.members[i].required && used[i] == 0) done = false;
    }
    if (done) return true;
    if (count >= all.max) return false;
    for (size_t i = 0; i < used.size(); ++i) {
      // Repeating a member brings nothing but the count nearer to min.
      const bool repeats = used[i] > 0;
      if (!members[i].productive) continue;
      if (repeats && (!all.members[i].repeatable || count >= all.min)) continue;
      std::vector<int> next = used;
      ++next[i];
      if (CanFinish(all, next, count + 1, members)) return true;
    }
    return false;
  }

  Sets OfUnordered(const Unordered& all) const {
    std::vector<Sets> members;
    for (const Unordered::Member& member : all.members) members.push_back(Of(member.node));
    Sets sets;
    const Sets separator = Of(all.separator);
    std::vector<int> used(members.size(), 0);
    if (CanFinish(all, used, 0, members)) {
      // Where nothing but a separator is missing, it must exist.
      Extend(all, members, separator, used, 0, Empty(), sets);
    }
    return sets;
  }

  // `so_far`: what the chosen members spell. Adds what it and longer choices spell to `sets`.
  void Extend(const Unordered& all, const std::vector<Sets>& members, const Sets& separator,
              const std::vector<int>& used, uint32_t count, const Sets& so_far, Sets& sets) const {
    bool done = count >= all.min && count <= all.max;
    for (size_t i = 0; i < used.size(); ++i) {
      if (all.members[i].required && used[i] == 0) done = false;
    }
    if (done) Merge(sets, so_far);
    if (count > 0 && so_far.words.empty()) return;
    for (size_t i = 0; i < members.size(); ++i) {
      if (!members[i].productive || (used[i] > 0 && !all.members[i].repeatable)) continue;
      std::vector<int> next = used;
      ++next[i];
      if (count + 1 > all.max || !CanFinish(all, next, count + 1, members)) continue;
      const Sets head = count == 0 ? so_far : Concat(so_far, separator);
      const Sets longer = Concat(head, members[i]);
      if (!longer.productive) continue;
      sets.productive = true;
      sets.prefixes.insert(longer.prefixes.begin(), longer.prefixes.end());
      Extend(all, members, separator, next, count + 1, longer, sets);
    }
  }

  const GrammarIr& ir_;
  const size_t limit_;
  std::vector<Sets> rules_;
  Sets root_;
};

}  // namespace deepinfer::grammar
