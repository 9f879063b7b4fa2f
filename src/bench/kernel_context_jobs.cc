// Kernels that look back over a sequence: attention, index scores, candidates, selection.
#include <algorithm>
#include <memory>

#include "bench/kernel_bench.h"
#include "bench/kernel_inputs.h"

namespace deepinfer::bench {
namespace {

using kernels::kGroup;
using kernels::kKvGroup;

constexpr int64_t kEntriesPerBlock = 256;

// Compressed entries of a context at ratio 1, in blocks.
struct Entries {
  Buffer<uint8_t> records;
  std::vector<const uint8_t*> blocks;
  kernels::EntryBlocks view;
};

// `scales` fill the last scale_bytes of every record; the rest are e2m1 codes.
Entries MakeEntries(InputMaker& make, int64_t entries, int64_t entry_bytes, int64_t scale_bytes,
                    const Buffer<uint8_t>& scales) {
  Entries out;
  out.records = make.E2m1Bytes(entries * entry_bytes);
  for (int64_t e = 0; e < entries; ++e) {
    std::copy_n(scales.data(), scale_bytes,
                out.records.data() + (e + 1) * entry_bytes - scale_bytes);
    if (e % kEntriesPerBlock == 0) out.blocks.push_back(out.records.data() + e * entry_bytes);
  }
  out.view = {out.blocks.data(), kEntriesPerBlock, entry_bytes};
  return out;
}

class ContextCases {
  struct IndexState {
    Entries keys;
    Buffer<bf16> q, weights;
    std::vector<int64_t> visible, block_counts;
    Buffer<int32_t> blocks;
    Buffer<float> scores;
    kernels::IndexScoreArgs args;
  };

 public:
  ContextCases(const KernelJobArgs& args, int64_t rows, int64_t context)
      : table_(args.table),
        pool_(args.pool),
        c_(args.dimensions.config),
        rows_(rows),
        context_(context),
        make_(args.pool, 1) {}

  KernelCase Attention() {
    struct State {
      Entries entries;
      Buffer<uint8_t> ring;
      kernels::WindowView window;
      Buffer<int32_t> selected;
      std::vector<kernels::AttentionQuery> lists;
      Buffer<bf16> q;
      Buffer<float> sink;
      Buffer<bf16> out;
    };
    const int64_t dim = c_.head_dim, heads = c_.num_heads, slots = c_.sliding_window;
    const int64_t topk = std::min(c_.index_topk, context_);
    auto s = std::make_shared<State>();
    s->entries = MakeEntries(make_, context_, c_.kv_entry_bytes(), dim / kKvGroup,
                             make_.E4m3Scales(dim / kKvGroup));
    s->ring = make_.E4m3Codes(slots * c_.window_entry_bytes());
    const Buffer<uint8_t> window_scales = make_.E8m0Scales(dim / kGroup);
    for (int64_t p = 0; p < slots; ++p) {
      std::copy_n(window_scales.data(), dim / kGroup,
                  s->ring.data() + p * c_.window_entry_bytes() + dim);
    }
    s->window = {s->ring.data(), slots, nullptr, INT64_MAX, c_.window_entry_bytes()};
    s->selected = Buffer<int32_t>(rows_ * topk);
    for (int64_t r = 0; r < rows_; ++r) {
      int32_t* list = s->selected.data() + r * topk;
      // One of every context / topk entries.
      for (int64_t i = 0; i < topk; ++i) {
        const int64_t first = i * context_ / topk, last = (i + 1) * context_ / topk;
        list[i] = static_cast<int32_t>(first + make_.Below(last - first));
      }
      s->lists.push_back({.window = &s->window,
                          .window_begin = 0,
                          .window_end = slots,
                          .window_slots = slots,
                          .entries = &s->entries.view,
                          .selected = list,
                          .selected_count = topk});
    }
    s->q = make_.Bf16s(rows_ * heads * dim);
    s->sink = make_.Floats(heads);
    s->out = Buffer<bf16>(rows_ * heads * dim);
    KernelCase kernel = Case("selected", topk);
    const auto keys = static_cast<double>(rows_ * (slots + topk));
    kernel.operations = keys * static_cast<double>(heads * dim) * 4;
    kernel.bytes = keys * static_cast<double>(c_.kv_entry_bytes());
    kernel.run = [&table = table_, &pool = pool_, s, rows = rows_, heads, dim] {
      table.attention(pool, {.queries = rows,
                             .heads = heads,
                             .dim = dim,
                             .q = s->q.data(),
                             .sink = s->sink.data(),
                             .scale = 0.04f,
                             .lists = s->lists.data(),
                             .out = s->out.data()});
    };
    return kernel;
  }

  KernelCase IndexScores() {
    const int64_t dim = c_.index_head_dim, heads = c_.index_heads;
    auto s = std::make_shared<IndexState>();
    s->keys = MakeEntries(make_, context_, c_.index_entry_bytes(), dim / kGroup,
                          make_.E8m0Scales(dim / kGroup));
    s->q = make_.Bf16s(rows_ * heads * dim);
    table_.round_q4u(pool_, s->q.data(), rows_, heads * dim);
    s->weights = make_.Bf16s(rows_ * heads);
    s->visible.assign(static_cast<size_t>(rows_), context_);
    s->scores = Buffer<float>(rows_ * context_);
    s->args = {.queries = rows_,
               .heads = heads,
               .dim = dim,
               .q = s->q.data(),
               .head_weights = s->weights.data(),
               .keys = s->keys.view,
               .visible = s->visible.data(),
               .candidates = {},
               .scores = s->scores.data(),
               .stride = context_};
    KernelCase kernel = Case("heads", heads);
    kernel.operations =
        2.0 * static_cast<double>(rows_ * context_) * static_cast<double>(heads * dim);
    kernel.bytes = static_cast<double>(context_ * c_.index_entry_bytes());
    kernel.run = [&table = table_, &pool = pool_, s] { table.index_scores(pool, s->args); };
    index_scores_ = s;
    return kernel;
  }

  // The scores of candidate blocks alone, spread over the context.
  KernelCase IndexScoresOfCandidates() {
    KernelCase all = IndexScores();
    const int64_t size = CandidateSize();
    const int64_t blocks = context_ / size, kept = std::min(c_.candidate_topk_blocks, blocks);
    auto s = index_scores_;
    s->blocks = Buffer<int32_t>(rows_ * kept);
    s->block_counts.assign(static_cast<size_t>(rows_), kept);
    for (int64_t i = 0; i < rows_ * kept; ++i) {
      s->blocks[i] = static_cast<int32_t>(i % kept * blocks / kept);
    }
    const double share = static_cast<double>(kept * size) / static_cast<double>(context_);
    all.params.push_back({"candidates", kept * size});
    all.operations *= share;
    all.bytes *= share;
    s->args.candidates = {s->blocks.data(), s->block_counts.data(), kept, size};
    return all;
  }

  KernelCase Candidates() {
    struct State {
      Buffer<float> scores;
      std::vector<int64_t> visible, counts;
      Buffer<int32_t> blocks;
    };
    auto s = std::make_shared<State>();
    s->scores = make_.Floats(rows_ * context_);
    s->visible.assign(static_cast<size_t>(rows_), context_);
    s->counts.resize(static_cast<size_t>(rows_));
    s->blocks = Buffer<int32_t>(rows_ * c_.candidate_topk_blocks);
    KernelCase kernel = Case("block", CandidateSize());
    kernel.bytes = 4.0 * static_cast<double>(rows_ * context_);
    const kernels::CandidateArgs args{.queries = rows_,
                                      .scores = s->scores.data(),
                                      .visible = s->visible.data(),
                                      .stride = context_,
                                      .block_size = CandidateSize(),
                                      .top_blocks = c_.candidate_topk_blocks,
                                      .blocks = s->blocks.data(),
                                      .block_count = s->counts.data()};
    kernel.run = [&table = table_, &pool = pool_, s, args] { table.candidates(pool, args); };
    return kernel;
  }

  KernelCase Select() {
    struct State {
      Buffer<float> scores;
      std::vector<int64_t> visible, count;
      Buffer<int32_t> selected;
    };
    auto s = std::make_shared<State>();
    s->scores = make_.Floats(rows_ * context_);
    s->visible.assign(static_cast<size_t>(rows_), context_);
    s->count.resize(static_cast<size_t>(rows_));
    s->selected = Buffer<int32_t>(rows_ * c_.index_topk);
    KernelCase kernel = Case("topk", c_.index_topk);
    kernel.bytes = 4.0 * static_cast<double>(rows_ * context_);
    kernel.run = [&table = table_, &pool = pool_, s, rows = rows_, context = context_,
                  topk = c_.index_topk] {
      table.select(pool, {.queries = rows,
                          .scores = s->scores.data(),
                          .visible = s->visible.data(),
                          .stride = context,
                          .topk = topk,
                          .selected = s->selected.data(),
                          .selected_count = s->count.data()});
    };
    return kernel;
  }

 private:
  int64_t CandidateSize() const {
    return std::clamp<int64_t>(c_.candidate_block_size, 1, context_);
  }
  KernelCase Case(const char* name, int64_t value) const {
    KernelCase kernel;
    kernel.params = {{"rows", rows_}, {"context", context_}, {name, value}};
    return kernel;
  }

  const kernels::KernelTable& table_;
  ThreadPool& pool_;
  const ModelConfig& c_;
  const int64_t rows_, context_;
  InputMaker make_;
  std::shared_ptr<IndexState> index_scores_;
};

struct NamedCase {
  const char* kernel;
  KernelCase (ContextCases::*make)();
};
constexpr NamedCase kCases[] = {
    {"attention", &ContextCases::Attention},
    {"index_scores", &ContextCases::IndexScores},
    {"index_scores", &ContextCases::IndexScoresOfCandidates},
    {"candidates", &ContextCases::Candidates},
    {"select", &ContextCases::Select},
};

}  // namespace

std::vector<KernelJob> ContextJobs(const KernelJobArgs& args) {
  const auto [least, greatest] = std::ranges::minmax(args.settings.rows);
  std::vector<KernelJob> jobs;
  for (const NamedCase& named : kCases) {
    for (const int64_t context : args.settings.contexts) {
      const auto add = [&](int64_t rows) {
        jobs.push_back({named.kernel, [args, rows, context, make = named.make] {
                          ContextCases cases(args, rows, context);
                          return (cases.*make)();
                        }});
      };
      add(least);
      if (greatest != least) add(greatest);
    }
  }
  return jobs;
}

}  // namespace deepinfer::bench
