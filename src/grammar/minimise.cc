// Minimisation: components in reverse topological order. A state outside every cycle, or one that
// only returns to itself, is settled by what its edges lead to; larger components are refined by
// Moore's method against settled targets.
#include <algorithm>
#include <unordered_map>

#include "base/random.h"
#include "grammar/automaton.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kSelf = ~uint32_t{0} - 1;

class Minimiser {
 public:
  Minimiser(const Dfa& dfa, Budget& budget)
      : dfa_(dfa), budget_(budget), class_of_(dfa.num_states(), Dfa::kDead) {}

  Result<Dfa> Run() {
    FindComponents();
    for (size_t i = 0; i + 1 < component_begin_.size(); ++i) {
      const std::span<const uint32_t> component = std::span(order_).subspan(
          component_begin_[i], component_begin_[i + 1] - component_begin_[i]);
      DI_RETURN_IF_ERROR(component.size() == 1 ? SettleOne(component[0]) : Refine(component));
    }
    return Build();
  }

 private:
  struct Signature {
    bool accepting;
    std::vector<Edge> edges;
    bool operator==(const Signature&) const = default;
  };
  struct SignatureHash {
    size_t operator()(const Signature& signature) const {
      uint64_t hash = signature.accepting ? 1 : 2;
      for (const Edge& edge : signature.edges) {
        hash = MixBits(hash ^ (uint64_t{edge.first} << 32 | edge.last)) + edge.target;
      }
      return MixBits(hash);
    }
  };

  // Tarjan's algorithm without recursion: order_ holds the components' states, each component
  // after all that it leads to.
  void FindComponents() {
    const uint32_t n = static_cast<uint32_t>(dfa_.num_states());
    std::vector<uint32_t> index(n, Dfa::kDead), low(n, 0);
    std::vector<bool> open(n, false);
    std::vector<uint32_t> stack;
    struct Visit {
      uint32_t state;
      uint32_t edge;
    };
    std::vector<Visit> visits = {{0, 0}};
    uint32_t next_index = 0;
    while (!visits.empty()) {
      auto& [state, edge] = visits.back();
      if (edge == 0 && index[state] == Dfa::kDead) {
        index[state] = low[state] = next_index++;
        open[state] = true;
        stack.push_back(state);
      }
      const auto edges = dfa_.edges(state);
      if (edge < edges.size()) {
        const uint32_t target = edges[edge++].target;
        if (index[target] == Dfa::kDead) {
          visits.push_back({target, 0});
        } else if (open[target]) {
          low[state] = std::min(low[state], index[target]);
        }
        continue;
      }
      const uint32_t done = state;
      if (low[done] == index[done]) {
        uint32_t member;
        do {
          member = stack.back();
          stack.pop_back();
          open[member] = false;
          order_.push_back(member);
        } while (member != done);
        component_begin_.push_back(static_cast<uint32_t>(order_.size()));
      }
      visits.pop_back();
      if (!visits.empty()) low[visits.back().state] = std::min(low[visits.back().state], low[done]);
    }
  }

  // The state's edges with classes for targets; `inside` gives those that class_of_ lacks.
  template <typename Inside>
  Signature SignatureOf(uint32_t state, const Inside& inside) const {
    Signature signature{dfa_.accepting(state), {}};
    for (const Edge& edge : dfa_.edges(state)) {
      const uint32_t target =
          class_of_[edge.target] != Dfa::kDead ? class_of_[edge.target] : inside(edge.target);
      std::vector<Edge>& edges = signature.edges;
      if (!edges.empty() && edges.back().target == target && edges.back().last + 1 == edge.first) {
        edges.back().last = edge.last;
      } else {
        edges.push_back({edge.first, edge.last, target});
      }
    }
    return signature;
  }

  uint32_t NewClass(uint32_t state) {
    representative_.push_back(state);
    returns_to_itself_.push_back(false);
    return static_cast<uint32_t>(representative_.size()) - 1;
  }

  Status SettleOne(uint32_t state) {
    Signature signature = SignatureOf(state, [](uint32_t) { return kSelf; });
    const auto known = classes_.find(signature);
    if (known != classes_.end()) {
      class_of_[state] = known->second;
    } else if (const uint32_t loop = EquivalentLoop(signature); loop != Dfa::kDead) {
      class_of_[state] = loop;
    } else {
      const uint32_t number = NewClass(state);
      class_of_[state] = number;
      for (const Edge& edge : signature.edges) {
        if (edge.target == kSelf) returns_to_itself_[number] = true;
      }
      classes_.emplace(std::move(signature), number);
    }
    return budget_.Charge(dfa_.edges(state).size() + 1);
  }

  // A class with a loop to itself whose signature this is, with the class itself for the loop.
  uint32_t EquivalentLoop(const Signature& signature) const {
    uint32_t tried = Dfa::kDead;
    for (const Edge& candidate : signature.edges) {
      const uint32_t target = candidate.target;
      if (target == kSelf || target == tried || !returns_to_itself_[target]) continue;
      tried = target;
      Signature looped = signature;
      for (Edge& edge : looped.edges) {
        if (edge.target == target) edge.target = kSelf;
      }
      const auto known = classes_.find(looped);
      if (known != classes_.end() && known->second == target) return target;
    }
    return Dfa::kDead;
  }

  Status Refine(std::span<const uint32_t> component) {
    // Parts of this component are numbered above every class while it is refined.
    const uint32_t base = 1u << 31;
    std::unordered_map<uint32_t, uint32_t> part_of;
    for (const uint32_t state : component) part_of[state] = base + (dfa_.accepting(state) ? 1 : 0);
    size_t num_parts = 1;
    while (true) {
      std::unordered_map<Signature, uint32_t, SignatureHash> parts;
      std::vector<uint32_t> next(component.size());
      uint64_t work = 0;
      for (size_t i = 0; i < component.size(); ++i) {
        Signature signature =
            SignatureOf(component[i], [&](uint32_t target) { return part_of.at(target); });
        work += signature.edges.size() + 1;
        const uint32_t fresh = base + static_cast<uint32_t>(parts.size());
        next[i] = parts.emplace(std::move(signature), fresh).first->second;
      }
      DI_RETURN_IF_ERROR(budget_.Charge(work));
      for (size_t i = 0; i < component.size(); ++i) part_of[component[i]] = next[i];
      // Signatures name the last round's parts, so equal counts mean that nothing was split.
      if (parts.size() == num_parts) break;
      num_parts = parts.size();
    }
    std::unordered_map<uint32_t, uint32_t> class_of_part;
    for (const uint32_t state : component) {
      const auto [entry, is_new] = class_of_part.emplace(part_of[state], 0);
      if (is_new) entry->second = NewClass(state);
    }
    for (const uint32_t state : component) class_of_[state] = class_of_part[part_of[state]];
    // States before this component may equal one inside it.
    for (const auto& [part, number] : class_of_part) {
      classes_.emplace(SignatureOf(representative_[number], [](uint32_t) { return kSelf; }),
                       number);
    }
    return {};
  }

  Dfa Build() const {
    const uint32_t start = class_of_[0];
    std::vector<uint32_t> number(representative_.size(), Dfa::kDead);
    std::vector<uint32_t> order = {start};
    number[start] = 0;
    Dfa result = Dfa::Builder();
    std::vector<Edge> edges;
    for (size_t i = 0; i < order.size(); ++i) {
      const uint32_t state = representative_[order[i]];
      edges.clear();
      for (const Edge& edge : dfa_.edges(state)) {
        uint32_t& target = number[class_of_[edge.target]];
        if (target == Dfa::kDead) {
          target = static_cast<uint32_t>(order.size());
          order.push_back(class_of_[edge.target]);
        }
        edges.push_back({edge.first, edge.last, target});
      }
      result.AppendState(dfa_.accepting(state), edges);
    }
    return result;
  }

  const Dfa& dfa_;
  Budget& budget_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> component_begin_ = {0};
  std::vector<uint32_t> class_of_;
  std::vector<uint32_t> representative_;  // of a class
  std::vector<bool> returns_to_itself_;   // by an edge, as SettleOne found it
  std::unordered_map<Signature, uint32_t, SignatureHash> classes_;
};

}  // namespace

Result<Dfa> Minimise(const Dfa& dfa, Budget& budget) { return Minimiser(dfa, budget).Run(); }

}  // namespace deepinfer::grammar
