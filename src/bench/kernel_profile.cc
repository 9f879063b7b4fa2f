#include "bench/kernel_profile.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "bench/timing.h"

namespace deepinfer::bench {

using kernels::GemmItem;
using kernels::GemmKind;
using kernels::KernelTable;

namespace {

KernelProfile* g_profile = nullptr;

// Every entry of KernelTable but those that are products, which count their operations too.
#define DI_KERNELS(X) \
  X(quantize_q8)      \
  X(round_q4u)        \
  X(pack_window)      \
  X(pack_kv)          \
  X(pack_index_key)   \
  X(rms_norm)         \
  X(rope)             \
  X(mhc_mixes)        \
  X(mhc_collapse)     \
  X(mhc_expand)       \
  X(stream_mean)      \
  X(attention)        \
  X(pool_pairs)       \
  X(scale_bf16)       \
  X(index_scores)     \
  X(candidates)       \
  X(select)           \
  X(gate)             \
  X(swiglu_q8)        \
  X(combine)          \
  X(engram_gather)    \
  X(engram_mix)

// Slots of counts_: those entries, the kinds of product, the product with the head.
constexpr std::string_view kEntryNames[] = {
#define DI_NAME(entry) #entry,
    DI_KERNELS(DI_NAME)
#undef DI_NAME
};
constexpr std::string_view kGemmNames[] = {"gemm_q8_fp8", "gemm_q8_fp4",   "gemm_bf16_fp8",
                                           "gemm_bf16",   "gemm_bf16_f32", "top_logits"};
constexpr size_t kEntries = std::size(kEntryNames);
constexpr size_t kTopLogitsSlot = kEntries + std::size(kGemmNames) - 1;

enum Entry : size_t {
#define DI_SLOT(entry) k_##entry,
  DI_KERNELS(DI_SLOT)
#undef DI_SLOT
};

}  // namespace

// Adds the time of its life to one slot.
class ProfiledCall {
 public:
  explicit ProfiledCall(size_t slot)
      : count_(g_profile->counts_[slot]), start_(std::chrono::steady_clock::now()) {}
  ~ProfiledCall() {
    count_.seconds += SecondsSince(start_);
    ++count_.calls;
  }
  static const KernelTable& table() { return g_profile->table_; }

 private:
  KernelCount& count_;
  std::chrono::steady_clock::time_point start_;
};

struct ProfiledGemm {
  static void Call(ThreadPool& pool, const GemmItem* items, int64_t count) {
    GemmKind largest = GemmKind::kQ8Fp8;
    double most = -1;
    for (int64_t i = 0; i < count; ++i) {
      const GemmItem& item = items[i];
      const auto weights = static_cast<double>(item.outputs() * item.inputs());
      const double operations = 2 * weights * static_cast<double>(item.rows());
      g_profile->gemm_operations_ += operations;
      if (item.kind == GemmKind::kQ8Fp4 && item.rows() > 0) {
        g_profile->fp4_bytes_ += weights / 2 + weights / kernels::kGroup;
      }
      if (operations > most) {
        most = operations;
        largest = item.kind;
      }
    }
    const ProfiledCall call(kEntries + static_cast<size_t>(largest));
    ProfiledCall::table().gemm(pool, items, count);
  }
  static void CallTopLogits(ThreadPool& pool, const kernels::TopLogitsArgs& args) {
    g_profile->gemm_operations_ +=
        2 * static_cast<double>(args.x.rows) * static_cast<double>(args.w.rows * args.w.cols);
    const ProfiledCall call(kTopLogitsSlot);
    ProfiledCall::table().top_logits(pool, args);
  }
};

namespace {

// A function of the same type as table entry `member` that times it.
template <auto member, size_t slot, typename Function>
struct Forwarder;
template <auto member, size_t slot, typename... Args>
struct Forwarder<member, slot, void (*)(ThreadPool&, Args...)> {
  static void Call(ThreadPool& pool, Args... args) {
    const ProfiledCall call(slot);
    (ProfiledCall::table().*member)(pool, args...);
  }
};

}  // namespace

const KernelTable& ProfiledTable() {
  static const KernelTable table = [] {
    KernelTable t{};
    t.name = "profiled";
    t.gemm = ProfiledGemm::Call;
    t.top_logits = ProfiledGemm::CallTopLogits;
#define DI_FORWARD(entry) \
  t.entry = Forwarder<&KernelTable::entry, k_##entry, decltype(KernelTable::entry)>::Call;
    DI_KERNELS(DI_FORWARD)
#undef DI_FORWARD
    return t;
  }();
  return table;
}

KernelProfile::KernelProfile(const KernelTable& table) : table_(table) {
  for (const std::string_view name : kEntryNames) counts_.push_back({.name = name});
  for (const std::string_view name : kGemmNames) counts_.push_back({.name = name});
  g_profile = this;
}
KernelProfile::~KernelProfile() { g_profile = nullptr; }

void KernelProfile::Clear() {
  for (KernelCount& count : counts_) count = {.name = count.name};
  gemm_operations_ = 0;
  fp4_bytes_ = 0;
}

std::vector<KernelCount> KernelProfile::counts() const {
  std::vector<KernelCount> called;
  std::ranges::copy_if(counts_, std::back_inserter(called),
                       [](const KernelCount& count) { return count.calls > 0; });
  std::ranges::sort(called, std::ranges::greater(), &KernelCount::seconds);
  return called;
}

double KernelProfile::kernel_seconds() const {
  double seconds = 0;
  for (const KernelCount& count : counts_) seconds += count.seconds;
  return seconds;
}

double KernelProfile::gemm_seconds() const {
  double seconds = 0;
  for (size_t i = kEntries; i < counts_.size(); ++i) seconds += counts_[i].seconds;
  return seconds;
}

}  // namespace deepinfer::bench
