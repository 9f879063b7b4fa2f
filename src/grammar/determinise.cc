// Subset construction.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "grammar/automaton.h"

namespace deepinfer::grammar {

// One run. NFA states are kept in sets only if they have symbol edges or accept ("core" states):
// sets that differ in pure empty-move states are equal.
class SubsetConstruction {
 public:
  SubsetConstruction(const Nfa& nfa, Budget& budget) : nfa_(nfa), budget_(budget) { BuildRows(); }

  Result<Dfa> Run() {
    const uint32_t start = 0;
    DI_RETURN_IF_ERROR(budget_.Charge(nfa_.num_edges() + nfa_.num_states()));
    SetOf(std::span(&start, 1));
    Dfa dfa = Dfa::Builder();
    for (uint32_t state = 0; state < sets_.size(); ++state) {
      DI_RETURN_IF_ERROR(Expand(state));
      bool accepting = false;
      for (const uint32_t member : Members(state)) accepting |= nfa_.accepting_[member];
      dfa.AppendState(accepting, out_);
    }
    return Trim(std::move(dfa));
  }

 private:
  struct Set {
    uint32_t begin;
    uint32_t end;
  };

  void BuildRows() {
    const size_t n = nfa_.num_states();
    row_.assign(n + 1, 0);
    empty_row_.assign(n + 1, 0);
    for (const auto& move : nfa_.moves_) ++row_[move.from + 1];
    for (const auto& move : nfa_.empty_moves_) ++empty_row_[move.from + 1];
    for (size_t i = 0; i < n; ++i) {
      row_[i + 1] += row_[i];
      empty_row_[i + 1] += empty_row_[i];
    }
    edges_.resize(nfa_.moves_.size());
    empty_targets_.resize(nfa_.empty_moves_.size());
    std::vector<uint32_t> fill(row_.begin(), row_.end() - 1);
    for (const auto& move : nfa_.moves_) edges_[fill[move.from]++] = move.edge;
    fill.assign(empty_row_.begin(), empty_row_.end() - 1);
    for (const auto& move : nfa_.empty_moves_) empty_targets_[fill[move.from]++] = move.to;
    seen_.assign(n, 0);
    single_.assign(n, Dfa::kDead);
  }

  std::span<const uint32_t> Members(uint32_t state) const {
    return std::span(members_).subspan(sets_[state].begin, sets_[state].end - sets_[state].begin);
  }

  // The number of the set that the NFA states and their empty moves make.
  uint32_t SetOf(std::span<const uint32_t> targets) {
    if (targets.size() == 1 && single_[targets[0]] != Dfa::kDead) return single_[targets[0]];
    closure_.clear();
    ++epoch_;
    stack_.assign(targets.begin(), targets.end());
    for (const uint32_t target : targets) seen_[target] = epoch_;
    while (!stack_.empty()) {
      const uint32_t state = stack_.back();
      stack_.pop_back();
      if (row_[state] != row_[state + 1] || nfa_.accepting_[state]) closure_.push_back(state);
      closure_work_ += 1 + empty_row_[state + 1] - empty_row_[state];
      for (uint32_t i = empty_row_[state]; i < empty_row_[state + 1]; ++i) {
        const uint32_t next = empty_targets_[i];
        if (seen_[next] == epoch_) continue;
        seen_[next] = epoch_;
        stack_.push_back(next);
      }
    }
    std::sort(closure_.begin(), closure_.end());
    const uint32_t set = Intern();
    if (targets.size() == 1) single_[targets[0]] = set;
    return set;
  }

  uint32_t Intern() {
    uint64_t hash = closure_.size();
    for (const uint32_t member : closure_) hash = MixBits(hash ^ member) + 1;
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const auto members = Members(it->second);
      if (std::equal(members.begin(), members.end(), closure_.begin(), closure_.end())) {
        return it->second;
      }
    }
    const uint32_t begin = static_cast<uint32_t>(members_.size());
    members_.insert(members_.end(), closure_.begin(), closure_.end());
    sets_.push_back({begin, static_cast<uint32_t>(members_.size())});
    const uint32_t number = static_cast<uint32_t>(sets_.size()) - 1;
    by_hash_.emplace(hash, number);
    return number;
  }

  // Sets out_ to the edges of a set: sweeps over the symbols with the list of edges that cover
  // the current one.
  Status Expand(uint32_t state) {
    gathered_.clear();
    out_.clear();
    for (const uint32_t member : Members(state)) {
      gathered_.insert(gathered_.end(), edges_.begin() + row_[member],
                       edges_.begin() + row_[member + 1]);
    }
    closure_work_ = 0;
    uint64_t work = gathered_.size() + 1;
    std::sort(gathered_.begin(), gathered_.end(),
              [](const Edge& a, const Edge& b) { return a.first < b.first; });
    active_.clear();
    size_t next = 0;
    uint64_t position = 0;
    while (next < gathered_.size() || !active_.empty()) {
      if (active_.empty()) position = gathered_[next].first;
      while (next < gathered_.size() && gathered_[next].first == position) {
        active_.push_back(gathered_[next++]);
      }
      uint64_t end = next < gathered_.size() ? gathered_[next].first : uint64_t{1} << 32;
      targets_.clear();
      for (const Edge& edge : active_) {
        end = std::min(end, uint64_t{edge.last} + 1);
        targets_.push_back(edge.target);
      }
      work += targets_.size() + 1;
      std::sort(targets_.begin(), targets_.end());
      targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
      out_.push_back(
          {static_cast<uint32_t>(position), static_cast<uint32_t>(end - 1), SetOf(targets_)});
      position = end;
      std::erase_if(active_, [&](const Edge& edge) { return edge.last < position; });
    }
    return budget_.Charge(work + closure_work_, sets_.size());
  }

  const Nfa& nfa_;
  Budget& budget_;
  std::vector<uint32_t> row_, empty_row_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> empty_targets_;
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 0;
  std::vector<uint32_t> single_;  // the set of one NFA state, where known
  std::vector<uint32_t> members_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::vector<uint32_t> closure_, stack_, targets_;
  std::vector<Edge> gathered_, active_, out_;
  uint64_t closure_work_ = 0;
};

Result<Dfa> Determinise(const Nfa& nfa, Budget& budget) {
  return SubsetConstruction(nfa, budget).Run();
}

}  // namespace deepinfer::grammar
