// Recognition with a program: Earley items over automaton states, call frames shared as a graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/program.h"

namespace deepinfer::grammar {

// One way to be somewhere in the grammar: a state of a rule that runs in a frame.
struct Item {
  uint32_t state;
  uint32_t frame;
  uint64_t reg;

  friend bool operator==(const Item&, const Item&) = default;
};

// Frames and a stack of item sets. A set is a range of the stack; the uppermost one can be closed
// and stepped from. Frames are made while a set is closed, one for each rule called at that
// position, and are never changed afterwards: cutting the stacks back to a Mark restores any
// earlier moment. Frame 0 is the bottom: what lies below it is the user's affair, who learns of its
// end by bottom_ended(). Not thread-safe. Keeps a reference to the program.
class Chart {
 public:
  explicit Chart(const Program& program);

  struct Mark {
    uint32_t frames;
    uint32_t links;
    uint32_t items;
  };
  Mark mark() const {
    return {static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(links_.size()),
            static_cast<uint32_t>(items_.size())};
  }
  void CutBack(const Mark& mark);

  uint32_t size() const { return static_cast<uint32_t>(items_.size()); }
  const Item& item(uint32_t index) const { return items_[index]; }
  std::span<const Item> items(uint32_t begin, uint32_t end) const {
    return {items_.data() + begin, items_.data() + end};
  }

  uint32_t rule_of(uint32_t frame) const { return frames_[frame].rule; }

  // Starts a new, empty set on top: what AddReached, Return and Step add belongs to it.
  void BeginSet();
  // Adds an item, or, where its rule can only end, what comes after that.
  void AddReached(const Item& item);
  // Adds what comes after the frame's rule.
  void Return(uint32_t frame);
  // Adds all items that need no byte from the set that starts at `begin`, the uppermost one:
  // calls, ends and register operations.
  void Close(uint32_t begin);
  // Makes a new set: where the closed set [begin, end) goes by the byte. False if it is empty and
  // the bottom did not end.
  bool Step(uint32_t begin, uint32_t end, uint8_t byte);

  // Since BeginSet (Step begins one, too): whether the rule of frame 0 ended.
  bool bottom_ended() const { return bottom_ended_; }
  // Whether an operation looked at the register of an item in frame 0 since the last reset.
  bool bottom_register_read() const { return bottom_register_read_; }
  void ResetBottomRegisterRead() { bottom_register_read_ = false; }
  // The bytes that the items can go by, guards aside.
  ByteSet FirstBytes(uint32_t begin, uint32_t end) const;
  // The bytes that Step would find a way by.
  ByteSet PossibleBytes(uint32_t begin, uint32_t end) const;

  // Appends all that can decide what follows the set [begin, end): its items and the frames they
  // can return to, numbered by first mention. `reg_class(state, reg)` names a register. False, with
  // part of it appended, if it takes more than max_words.
  template <typename RegClass>
  bool AppendSignature(uint32_t begin, uint32_t end, size_t max_words, const RegClass& reg_class,
                       std::vector<uint64_t>& out) const {
    std::vector<uint32_t> frames;
    const auto add_item = [&](const Item& item) {
      size_t number = 0;
      while (number < frames.size() && frames[number] != item.frame) ++number;
      if (number == frames.size()) frames.push_back(item.frame);
      out.push_back(uint64_t{item.state} << 32 | number);
      out.push_back(reg_class(item.state, item.reg));
    };
    for (uint32_t i = begin; i < end && out.size() <= max_words; ++i) add_item(items_[i]);
    for (size_t i = 0; i < frames.size() && out.size() <= max_words; ++i) {
      out.push_back(~uint64_t{0} - frames_[frames[i]].rule);
      out.push_back(frames[i] == 0 ? 1 : 0);
      for (uint32_t link = frames_[frames[i]].first_link;
           link != kNoLink && out.size() <= max_words; link = links_[link].next) {
        add_item(links_[link].after);
      }
    }
    return out.size() <= max_words;
  }

  // Links and items looked at since the counter was reset; the user bounds it.
  uint64_t work() const { return work_; }
  void ResetWork() { work_ = 0; }

  size_t bytes_used() const;

 private:
  struct Frame {
    uint32_t rule;
    uint32_t first_link;
    bool ended_at_once;  // while its own position is closed: it matched the empty string
  };
  struct Link {
    Item after;     // where the caller goes on
    uint32_t next;  // kNoLink: the last one
  };
  static constexpr uint32_t kNoLink = ~uint32_t{0};

  bool AddItem(const Item& item);
  bool AddToTable(const Item& item);
  void Call(const Item& item, uint32_t rule, uint32_t target);
  void AddLink(uint32_t frame, Item after);
  void End(uint32_t frame);

  const Program* program_;  // never null
  std::vector<Frame> frames_;
  std::vector<Link> links_;
  std::vector<Item> items_;
  uint32_t set_begin_ = 0;
  uint32_t closing_frames_ = 0;  // frames from here on belong to the position being closed
  bool bottom_ended_ = false;
  bool bottom_register_read_ = false;
  uint64_t work_ = 0;
  std::vector<uint32_t> frame_of_rule_;  // valid if in range and of that rule
  std::vector<uint32_t> table_;          // item indices + 1 of a large set, by hash
  uint32_t table_begin_ = ~uint32_t{0};  // the set that the table holds
  std::vector<uint32_t> returned_frames_;
};

}  // namespace deepinfer::grammar
