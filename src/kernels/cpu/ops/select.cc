// Candidate blocks and the selection list (spec model-v41 section 2.5.5). Ties go to the lowest
// entry number.
//
// One pass over the scores collects what exceeds a threshold, in entry order. A full collection is
// cut to the best ones, which raises the threshold to the worst of them: the rest of the row is
// then mostly skipped 16 scores at a time.
#include "kernels/cpu/ops/select.h"

#include "base/thread_pool.h"
#include "kernels/cpu/ops/keys.h"
#include "kernels/cpu/ops/shares.h"
#include "kernels/cpu/ops/simd.h"
#include "kernels/cpu/scratch.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {
namespace {

constexpr float kNever = -__builtin_inff();
// Scores collected beyond twice the wanted number before a cut.
constexpr int64_t kSlack = 256;
// Operations on 16 lanes that a row's scores cost, for each 16 of them.
constexpr int64_t kScanOperations = 4;

constexpr int32_t kFirstNumbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

enum ScratchSlot { kValueSlot, kNumberSlot, kBlockSlot };

// Integers in the order of the floats; zeros of both signs compare equal as floats still.
DEEPINFER_INLINE int64_t OrderOf(float x) {
  const auto u = __builtin_bit_cast(int32_t, x);
  return u < 0 ? u ^ 0x7fffffff : u;
}
DEEPINFER_INLINE float FloatOfOrder(int64_t order) {
  const auto u = static_cast<int32_t>(order);
  return __builtin_bit_cast(float, u < 0 ? u ^ 0x7fffffff : u);
}

// The best `keep` of the scores scanned so far, ascending by number, among a few more.
class BestScores {
 public:
  explicit BestScores(int64_t keep) : keep_(keep), capacity_(2 * keep + kSlack) {
    const auto room = static_cast<size_t>(capacity_ + 2 * kLanes);
    values_ = static_cast<float*>(ScratchBytes(kValueSlot, room * sizeof(float)));
    numbers_ = static_cast<int32_t*>(ScratchBytes(kNumberSlot, room * sizeof(int32_t)));
  }

  // Numbers begin at 0. Scores of -infinity are never among the best.
  void Scan(const float* scores, int64_t count) {
    I32x16 numbers = Load(kFirstNumbers);
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      Collect(Load(scores + j), numbers);
      numbers = numbers + I32Set1(kLanes);
    }
    if (j < count) {
      float rest[kLanes];
      Store(Set1(kNever), rest);
      for (int64_t i = 0; j + i < count; ++i) rest[i] = scores[j + i];
      Collect(Load(rest), numbers);
    }
    if (count_ > keep_) Cut();
  }

  int64_t count() const { return count_; }
  const int32_t* numbers() const { return numbers_; }

 private:
  DEEPINFER_INLINE void Collect(F32x16 x, I32x16 numbers) {
    const Mask16 above = Less(Set1(threshold_), x);
    const uint32_t bits = Bits(above);
    if (bits == 0) return;
    StoreSelected(above, x, values_ + count_);
    StoreSelected(above, numbers, numbers_ + count_);
    count_ += __builtin_popcount(bits);
    if (count_ > capacity_) Cut();
  }

  // How many collected values reach (or exceed) x.
  int64_t CountReaching(float x) const {
    int64_t count = 0;
    const F32x16 bound = Set1(x);
    for (int64_t i = 0; i < count_; i += kLanes) {
      count += __builtin_popcount(Bits(LessEqual(bound, Load(values_ + i))));
    }
    return count;
  }
  int64_t CountAbove(float x) const {
    int64_t count = 0;
    const F32x16 bound = Set1(x);
    for (int64_t i = 0; i < count_; i += kLanes) {
      count += __builtin_popcount(Bits(Less(bound, Load(values_ + i))));
    }
    return count;
  }

  // Leaves the best keep_ of more than that many.
  void Cut() {
    Store(Set1(kNever), values_ + count_);
    F32x16 high = Load(values_);
    for (int64_t i = kLanes; i < count_; i += kLanes) high = VMax(high, Load(values_ + i));
    // Bisection: at least keep_ values reach `reached`, fewer reach `missed`.
    int64_t reached = OrderOf(threshold_), missed = OrderOf(MaxLanes(high)) + 1;
    while (missed - reached > 1) {
      const int64_t middle = reached + (missed - reached) / 2;
      const int64_t count = CountReaching(FloatOfOrder(middle));
      (count >= keep_ ? reached : missed) = middle;
      if (count == keep_) break;
    }
    threshold_ = FloatOfOrder(reached);
    int64_t equals = keep_ - CountAbove(threshold_), kept = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const float value = values_[i];
      const bool equal = value == threshold_ && equals > 0;
      values_[kept] = value;
      numbers_[kept] = numbers_[i];
      kept += value > threshold_ || equal ? 1 : 0;
      equals -= equal ? 1 : 0;
    }
    count_ = kept;
  }

  int64_t keep_, capacity_, count_ = 0;
  float threshold_ = kNever;
  float* values_;
  int32_t* numbers_;
};

// The largest score of each block.
DEEPINFER_INLINE void BlockMaxima(const float* scores, int64_t count, int64_t size, float* best) {
  for (int64_t first = 0; first < count; first += size) {
    const int64_t last = Min(first + size, count);
    float top = kNever;
    for (int64_t j = first; j < last; ++j) top = Max(top, scores[j]);
    *best++ = top;
  }
}

void CandidateRow(const CandidateArgs& args, int64_t i) {
  const int64_t visible = args.visible[i];
  const int64_t blocks = (visible + args.block_size - 1) / args.block_size;
  args.block_count[i] = 0;
  if (blocks == 0) return;
  auto* best =
      static_cast<float*>(ScratchBytes(kBlockSlot, static_cast<size_t>(blocks) * sizeof(float)));
  BlockMaxima(args.scores + i * args.stride, visible, args.block_size, best);
  // The newest entries are always candidates.
  best[blocks - 1] = __builtin_inff();
  BestScores kept(args.top_blocks);
  kept.Scan(best, blocks);
  __builtin_memcpy(args.blocks + i * args.top_blocks, kept.numbers(),
                   static_cast<size_t>(kept.count()) * sizeof(int32_t));
  args.block_count[i] = kept.count();
}

void SelectRow(const SelectArgs& args, int64_t i) {
  const BlockLists& lists = args.candidates;
  const int64_t columns = lists.blocks == nullptr ? args.visible[i] : lists.count[i] * lists.size;
  BestScores kept(args.topk);
  kept.Scan(args.scores + i * args.stride, columns);
  int32_t* selected = args.selected + i * args.topk;
  const int32_t* numbers = kept.numbers();
  for (int64_t k = 0; k < args.topk; ++k) {
    selected[k] = k < kept.count() ? EntryOfColumn(lists, i, numbers[k]) : -1;
  }
  args.selected_count[i] = kept.count();
}

}  // namespace

void Candidates(ThreadPool& pool, const CandidateArgs& args) {
  pool.ParallelFor(args.queries, Grain(args.stride / kLanes * kScanOperations),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t i = begin; i < end; ++i) CandidateRow(args, i);
                   });
}

void Select(ThreadPool& pool, const SelectArgs& args) {
  pool.ParallelFor(args.queries, Grain(args.stride / kLanes * kScanOperations),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t i = begin; i < end; ++i) SelectRow(args, i);
                   });
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
