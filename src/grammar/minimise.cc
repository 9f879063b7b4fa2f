// Minimisation: components in reverse topological order. A state outside every cycle, or one that
// only returns to itself, is settled by what its edges lead to; larger components are refined by
// Hopcroft's method against settled targets.
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
      : dfa_(dfa),
        budget_(budget),
        class_of_(dfa.num_states(), Dfa::kDead),
        local_(dfa.num_states(), Dfa::kDead) {}

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

  // Hopcroft's refinement of one component: parts hold the states that were not told apart so far.
  // When a part splits, its largest piece keeps the number, so that only states that lead to the
  // smaller ones are looked at again.
  class Partition {
   public:
    Partition(Minimiser& owner, std::span<const uint32_t> component)
        : owner_(owner), component_(component), part_(component.size(), 0) {
      for (uint32_t i = 0; i < component.size(); ++i) owner_.local_[component[i]] = i;
      elements_.resize(component.size());
      place_.resize(component.size());
    }
    ~Partition() {
      for (const uint32_t state : component_) owner_.local_[state] = Dfa::kDead;
    }
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;

    Status Run() {
      BuildSources();
      // Rejecting states first, then accepting ones.
      uint32_t filled = 0;
      for (const bool accepting : {false, true}) {
        const uint32_t begin = filled;
        for (uint32_t i = 0; i < component_.size(); ++i) {
          if (owner_.dfa_.accepting(component_[i]) == accepting) elements_[filled++] = i;
        }
        if (filled > begin) AddPart(begin, filled);
      }
      for (uint32_t i = 0; i < component_.size(); ++i) Mark(i);
      while (!pending_.empty()) {
        const uint32_t part = pending_.back();
        pending_.pop_back();
        DI_RETURN_IF_ERROR(Split(part));
      }
      return {};
    }
    size_t num_parts() const { return parts_.size(); }
    uint32_t PartOf(uint32_t state) const { return part_[owner_.local_[state]]; }

   private:
    struct Part {
      uint32_t begin;
      uint32_t end;
      uint32_t marked;  // that many elements at the begin must be looked at
    };
    // A marked state with what it leads to: words first, last, target.
    struct Look {
      uint32_t element;
      uint32_t begin;
      uint32_t end;
    };

    void BuildSources() {
      source_begin_.assign(component_.size() + 1, 0);
      const auto for_each = [&](const auto& visit) {
        for (uint32_t i = 0; i < component_.size(); ++i) {
          for (const Edge& edge : owner_.dfa_.edges(component_[i])) {
            const uint32_t target = owner_.local_[edge.target];
            if (target != Dfa::kDead) visit(i, target);
          }
        }
      };
      for_each([&](uint32_t, uint32_t target) { ++source_begin_[target + 1]; });
      for (size_t i = 1; i < source_begin_.size(); ++i) source_begin_[i] += source_begin_[i - 1];
      sources_.resize(source_begin_.back());
      std::vector<uint32_t> fill(source_begin_.begin(), source_begin_.end() - 1);
      for_each([&](uint32_t source, uint32_t target) { sources_[fill[target]++] = source; });
    }

    uint32_t AddPart(uint32_t begin, uint32_t end) {
      const uint32_t number = static_cast<uint32_t>(parts_.size());
      parts_.push_back({begin, end, 0});
      for (uint32_t i = begin; i < end; ++i) {
        part_[elements_[i]] = number;
        place_[elements_[i]] = i;
      }
      return number;
    }

    void Mark(uint32_t element) {
      Part& part = parts_[part_[element]];
      const uint32_t place = place_[element];
      const uint32_t border = part.begin + part.marked;
      if (place < border) return;
      if (part.marked++ == 0) pending_.push_back(part_[element]);
      std::swap(elements_[place], elements_[border]);
      place_[elements_[place]] = place;
      place_[elements_[border]] = border;
    }

    Look LookAt(uint32_t element) {
      const uint32_t begin = static_cast<uint32_t>(words_.size());
      for (const Edge& edge : owner_.dfa_.edges(component_[element])) {
        const uint32_t local = owner_.local_[edge.target];
        // Parts are numbered above every class.
        const uint32_t target =
            local == Dfa::kDead ? owner_.class_of_[edge.target] : (1u << 31) + part_[local];
        const size_t size = words_.size();
        if (size > begin && words_[size - 1] == target && words_[size - 2] + 1 == edge.first) {
          words_[size - 2] = edge.last;
        } else {
          words_.insert(words_.end(), {edge.first, edge.last, target});
        }
      }
      return {element, begin, static_cast<uint32_t>(words_.size())};
    }
    std::span<const uint32_t> WordsOf(const Look& look) const {
      return std::span(words_).subspan(look.begin, look.end - look.begin);
    }
    bool Less(const Look& a, const Look& b) const {
      const auto x = WordsOf(a);
      const auto y = WordsOf(b);
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    }

    // The states of the part that are not marked lead to the same parts as before, all alike.
    Status Split(uint32_t number) {
      const Part part = parts_[number];
      parts_[number].marked = 0;
      words_.clear();
      looks_.clear();
      const uint32_t border = part.begin + part.marked;
      for (uint32_t i = part.begin; i < border; ++i) looks_.push_back(LookAt(elements_[i]));
      const bool has_others = border < part.end;
      const Look other = has_others ? LookAt(elements_[border]) : Look{};
      DI_RETURN_IF_ERROR(owner_.budget_.Charge(words_.size() / 3 + looks_.size() + 1));
      std::sort(looks_.begin(), looks_.end(),
                [this](const Look& a, const Look& b) { return Less(a, b); });
      // Those that are like the others go to the end, beside them.
      const auto like_others = [&](const Look& look) {
        return has_others && !Less(look, other) && !Less(other, look);
      };
      const auto alike =
          std::equal_range(looks_.begin(), looks_.end(), other,
                           [this](const Look& a, const Look& b) { return Less(a, b); });
      if (has_others) std::rotate(alike.first, alike.second, looks_.end());
      groups_.clear();
      for (size_t i = 0; i < looks_.size(); ++i) {
        const uint32_t place = part.begin + static_cast<uint32_t>(i);
        elements_[place] = looks_[i].element;
        place_[looks_[i].element] = place;
        if (i == 0 || Less(looks_[i - 1], looks_[i]) || Less(looks_[i], looks_[i - 1])) {
          groups_.push_back(place);
        }
      }
      if (has_others && (looks_.empty() || !like_others(looks_.back()))) groups_.push_back(border);
      if (groups_.size() == 1) return {};
      groups_.push_back(part.end);
      size_t largest = 0;
      for (size_t i = 0; i + 1 < groups_.size(); ++i) {
        if (groups_[i + 1] - groups_[i] > groups_[largest + 1] - groups_[largest]) largest = i;
      }
      parts_[number] = {groups_[largest], groups_[largest + 1], 0};
      const size_t first_new = parts_.size();
      for (size_t i = 0; i + 1 < groups_.size(); ++i) {
        if (i != largest) AddPart(groups_[i], groups_[i + 1]);
      }
      moved_.clear();
      for (size_t i = first_new; i < parts_.size(); ++i) {
        moved_.insert(moved_.end(), elements_.begin() + parts_[i].begin,
                      elements_.begin() + parts_[i].end);
      }
      for (const uint32_t element : moved_) {
        for (uint32_t i = source_begin_[element]; i < source_begin_[element + 1]; ++i) {
          Mark(sources_[i]);
        }
      }
      return {};
    }

    Minimiser& owner_;
    const std::span<const uint32_t> component_;
    // States by their place in the component.
    std::vector<uint32_t> part_, elements_, place_;
    std::vector<uint32_t> source_begin_, sources_;
    std::vector<Part> parts_;
    std::vector<uint32_t> pending_, words_, groups_, moved_;
    std::vector<Look> looks_;
  };

  Status Refine(std::span<const uint32_t> component) {
    Partition partition(*this, component);
    DI_RETURN_IF_ERROR(partition.Run());
    std::vector<uint32_t> class_of_part(partition.num_parts(), Dfa::kDead);
    for (const uint32_t state : component) {
      uint32_t& number = class_of_part[partition.PartOf(state)];
      if (number == Dfa::kDead) number = NewClass(state);
    }
    for (const uint32_t state : component)
      class_of_[state] = class_of_part[partition.PartOf(state)];
    // States before this component may equal one inside it.
    for (const uint32_t number : class_of_part) {
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
  std::vector<uint32_t> local_;  // of states in the component being refined: their place in it
  std::vector<uint32_t> representative_;  // of a class
  std::vector<bool> returns_to_itself_;   // by an edge, as SettleOne found it
  std::unordered_map<Signature, uint32_t, SignatureHash> classes_;
};

}  // namespace

Result<Dfa> Minimise(const Dfa& dfa, Budget& budget) { return Minimiser(dfa, budget).Run(); }

}  // namespace deepinfer::grammar
