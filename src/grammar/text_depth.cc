// How much text of a class an automaton takes from a state.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "grammar/state_mask.h"

namespace deepinfer::grammar {
namespace {

// Larger searches are given up: the walk that they would save costs less.
constexpr size_t kMaxPositions = 32;
constexpr uint64_t kMaxSteps = 20'000;

class TextDepth {
 public:
  TextDepth(const Program& program, const TextSlice& slice, const ByteSet& follow)
      : program_(program), slice_(slice), follow_(follow) {}

  std::optional<uint64_t> Run(uint32_t state, uint64_t reg) {
    std::vector<Position> level = {{state, reg}};
    bool may_leave = false;  // somewhere behind the first position text could go on elsewhere
    for (uint64_t depth = 0; depth <= slice_.longest(); ++depth) {
      next_.clear();
      size_t alive = 0;
      for (const Position& position : level) alive += TakesAll(position, 0) ? 1 : 0;
      if (alive < level.size()) {
        const bool all_dead = std::all_of(level.begin(), level.end(),
                                          [this](const Position& p) { return TakesNone(p); });
        return all_dead && depth > 0 && !may_leave ? std::optional(depth) : std::nullopt;
      }
      if (next_.size() > kMaxPositions || steps_ > kMaxSteps) return std::nullopt;
      done_.insert(done_.end(), level.begin(), level.end());
      level = next_;
      const auto known = [this](const Position& position) { return Contains(done_, position); };
      if (std::all_of(level.begin(), level.end(), known)) break;
      may_leave |= std::any_of(level.begin(), level.end(),
                               [this](const Position& p) { return MayLeave(p); });
    }
    return uint64_t{kUnbounded};
  }

  bool register_read() const { return register_read_; }

 private:
  // Between two characters.
  struct Position {
    uint32_t state;
    uint64_t reg;
    friend bool operator==(const Position&, const Position&) = default;
  };

  static bool Contains(const std::vector<Position>& list, const Position& position) {
    return std::find(list.begin(), list.end(), position) != list.end();
  }

  // Whether every character, from its part at `part` of the class's automaton on, has a way;
  // collects where they lead. Operations on the way must not fail.
  bool TakesAll(const Position& from, uint32_t part) {
    const Dfa& character = slice_.character();
    if (character.accepting(part)) {
      if (!Contains(next_, from)) next_.push_back(from);
      return next_.size() <= kMaxPositions + 1;
    }
    const auto ways = program_.bytes(from.state);
    ++steps_;
    for (const Edge& wanted : character.edges(part)) {
      uint32_t next = wanted.first;
      for (const ByteEdge& edge : ways) {
        if (edge.last < next) continue;
        if (edge.first > next || next > wanted.last) break;
        Position to{edge.target, from.reg};
        register_read_ |= edge.ops != 0;
        if (edge.ops != 0 && !program_.Apply(edge.ops, to.reg)) return false;
        if (!TakesAll(to, wanted.target)) return false;
        next = uint32_t{edge.last} + 1;
      }
      if (next <= wanted.last) return false;
    }
    return true;
  }

  // Whether text of the class could go on other than by the state's byte edges.
  bool MayLeave(const Position& position) const {
    const uint8_t flags = program_.states[position.state].flags;
    if (flags & kHasSpecial) return true;
    return (flags & kAccepting) != 0 && follow_.Intersects(slice_.first_bytes());
  }

  // Whether no character of the class can come, neither in the rule nor after it.
  bool TakesNone(const Position& position) {
    for (const ByteEdge& edge : program_.bytes(position.state)) {
      ByteSet bytes;
      bytes.AddRange(edge.first, edge.last);
      uint64_t reg = position.reg;
      register_read_ |= edge.ops != 0;
      if (bytes.Intersects(slice_.first_bytes()) &&
          (edge.ops == 0 || program_.Apply(edge.ops, reg))) {
        return false;
      }
    }
    return !MayLeave(position);
  }

  const Program& program_;
  const TextSlice& slice_;
  const ByteSet& follow_;
  std::vector<Position> next_;
  std::vector<Position> done_;  // positions that take every character
  uint64_t steps_ = 0;
  bool register_read_ = false;
};

}  // namespace

std::optional<uint64_t> TextTaken(const Program& program, uint32_t state, uint64_t reg,
                                  const TextSlice& slice, const ByteSet& follow,
                                  bool& register_read) {
  TextDepth depth(program, slice, follow);
  const std::optional<uint64_t> taken = depth.Run(state, reg);
  register_read |= depth.register_read();
  return taken;
}

}  // namespace deepinfer::grammar
