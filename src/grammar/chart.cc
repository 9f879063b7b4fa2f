#include "grammar/chart.h"

#include <algorithm>

#include "base/random.h"

namespace deepinfer::grammar {
namespace {

// Sets of fewer items are searched from end to end.
constexpr uint32_t kLinearItems = 16;

uint64_t HashOf(const Item& item) {
  return MixBits((uint64_t{item.state} << 32 | item.frame) ^ MixBits(item.reg));
}

}  // namespace

Chart::Chart(const Program& program)
    : program_(&program), frame_of_rule_(program.rule_start.size(), 0) {
  frames_.push_back({program.root_rule, kNoLink, false});
}

void Chart::CutBack(const Mark& mark) {
  frames_.resize(mark.frames);
  links_.resize(mark.links);
  items_.resize(mark.items);
  table_begin_ = ~uint32_t{0};
}

void Chart::BeginSet() {
  set_begin_ = size();
  bottom_ended_ = false;
  table_begin_ = ~uint32_t{0};
}

bool Chart::AddItem(const Item& item) {
  const uint32_t count = size() - set_begin_;
  ++work_;
  if (count < kLinearItems) {
    for (uint32_t i = set_begin_; i < size(); ++i) {
      if (items_[i] == item) return false;
    }
    items_.push_back(item);
    return true;
  }
  return AddToTable(item);
}

bool Chart::AddToTable(const Item& item) {
  const uint32_t count = size() - set_begin_;
  const bool grow = table_begin_ == set_begin_ && 2 * (count + 1) > table_.size();
  if (table_begin_ != set_begin_ || grow) {
    size_t slots = 64;
    while (slots < 4 * size_t{count}) slots *= 2;
    table_.assign(slots, 0);
    table_begin_ = set_begin_;
    for (uint32_t i = set_begin_; i < size(); ++i) {
      size_t slot = HashOf(items_[i]) & (slots - 1);
      while (table_[slot] != 0) slot = (slot + 1) & (slots - 1);
      table_[slot] = i + 1;
    }
  }
  const size_t slots = table_.size();
  size_t slot = HashOf(item) & (slots - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (slots - 1)) {
    if (items_[table_[slot] - 1] == item) return false;
  }
  table_[slot] = size() + 1;
  items_.push_back(item);
  return true;
}

void Chart::AddReached(const Item& item) {
  if ((program_->states[item.state].flags & kPureReturn) == 0) {
    AddItem(item);
    return;
  }
  returned_frames_.clear();
  Return(item.frame);
}

void Chart::Return(uint32_t frame) {
  std::vector<uint32_t>& pending = returned_frames_;
  size_t next = pending.size();
  pending.push_back(frame);
  for (; next < pending.size(); ++next) {
    const uint32_t ended = pending[next];
    if (ended == 0) bottom_ended_ = true;
    for (uint32_t link = frames_[ended].first_link; link != kNoLink; link = links_[link].next) {
      const Item& after = links_[link].after;
      ++work_;
      if ((program_->states[after.state].flags & kPureReturn) == 0) {
        AddItem(after);
      } else if (std::find(pending.begin(), pending.end(), after.frame) == pending.end()) {
        pending.push_back(after.frame);
      }
    }
  }
  pending.clear();
}

void Chart::Close(uint32_t begin) {
  set_begin_ = begin;
  closing_frames_ = static_cast<uint32_t>(frames_.size());
  for (uint32_t i = begin; i < size(); ++i) {
    const Item item = items_[i];
    const uint8_t flags = program_->states[item.state].flags;
    ++work_;
    if (flags & kAccepting) End(item.frame);
    if ((flags & kHasSpecial) == 0) continue;
    for (const SpecialEdge& edge : program_->specials(item.state)) {
      if (edge.is_call) {
        Call(item, edge.index, edge.target);
        continue;
      }
      uint64_t reg = item.reg;
      bottom_register_read_ |= item.frame == 0;
      if (program_->Apply(edge.index, reg)) AddItem({edge.target, item.frame, reg});
    }
  }
}

void Chart::Call(const Item& item, uint32_t rule, uint32_t target) {
  uint32_t frame = frame_of_rule_[rule];
  const bool known =
      frame >= closing_frames_ && frame < frames_.size() && frames_[frame].rule == rule;
  if (!known) {
    frame = static_cast<uint32_t>(frames_.size());
    frames_.push_back({rule, kNoLink, false});
    frame_of_rule_[rule] = frame;
    AddItem({program_->rule_start[rule], frame, 0});
  }
  // A call at the very end of its rule returns straight to the rule's own callers, so that right
  // recursion does not pile up frames. Only finished frames have all their links.
  const bool tail = (program_->states[target].flags & kPureReturn) != 0;
  if (tail && item.frame != 0 && item.frame < closing_frames_) {
    for (uint32_t link = frames_[item.frame].first_link; link != kNoLink;
         link = links_[link].next) {
      AddLink(frame, links_[link].after);
    }
    return;
  }
  AddLink(frame, {target, item.frame, item.reg});
}

// By value: `after` often is one of the links that grow here.
void Chart::AddLink(uint32_t frame, Item after) {
  for (uint32_t link = frames_[frame].first_link; link != kNoLink; link = links_[link].next) {
    ++work_;
    if (links_[link].after == after) return;
  }
  links_.push_back({after, frames_[frame].first_link});
  frames_[frame].first_link = static_cast<uint32_t>(links_.size()) - 1;
  if (frames_[frame].ended_at_once) AddItem(after);
}

void Chart::End(uint32_t frame) {
  if (frame == 0) bottom_ended_ = true;
  if (frame >= closing_frames_) {
    if (frames_[frame].ended_at_once) return;
    frames_[frame].ended_at_once = true;
  }
  for (uint32_t link = frames_[frame].first_link; link != kNoLink; link = links_[link].next) {
    AddItem(links_[link].after);
  }
}

bool Chart::Step(uint32_t begin, uint32_t end, uint8_t byte) {
  BeginSet();
  for (uint32_t i = begin; i < end; ++i) {
    const Item item = items_[i];
    ++work_;
    for (const ByteEdge& edge : program_->bytes(item.state)) {
      if (edge.first > byte) break;
      if (edge.last < byte) continue;
      uint64_t reg = item.reg;
      bottom_register_read_ |= edge.ops != 0 && item.frame == 0;
      if (edge.ops == 0 || program_->Apply(edge.ops, reg)) {
        AddReached({edge.target, item.frame, reg});
      }
      break;
    }
  }
  return size() > set_begin_ || bottom_ended_;
}

ByteSet Chart::FirstBytes(uint32_t begin, uint32_t end) const {
  ByteSet set;
  for (uint32_t i = begin; i < end; ++i) {
    for (const ByteEdge& edge : program_->bytes(items_[i].state)) {
      set.AddRange(edge.first, edge.last);
    }
  }
  return set;
}

ByteSet Chart::PossibleBytes(uint32_t begin, uint32_t end) const {
  ByteSet set;
  for (uint32_t i = begin; i < end; ++i) {
    for (const ByteEdge& edge : program_->bytes(items_[i].state)) {
      uint64_t reg = items_[i].reg;
      if (edge.ops == 0 || program_->Apply(edge.ops, reg)) set.AddRange(edge.first, edge.last);
    }
  }
  return set;
}

size_t Chart::bytes_used() const {
  return sizeof(*this) + frames_.capacity() * sizeof(Frame) + links_.capacity() * sizeof(Link) +
         items_.capacity() * sizeof(Item) + frame_of_rule_.capacity() * sizeof(uint32_t);
}

}  // namespace deepinfer::grammar
