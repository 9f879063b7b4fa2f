#include "kernels/cpu/ops/attention.h"
#include "kernels/cpu/ops/engram.h"
#include "kernels/cpu/ops/gemm.h"
#include "kernels/cpu/ops/head.h"
#include "kernels/cpu/ops/indexer.h"
#include "kernels/cpu/ops/mhc.h"
#include "kernels/cpu/ops/moe.h"
#include "kernels/cpu/ops/norm_rope.h"
#include "kernels/cpu/ops/quantize.h"
#include "kernels/cpu/ops/select.h"
#include "kernels/reference/reference.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

#define DEEPINFER_STRING(x) #x
#define DEEPINFER_NAME(x) DEEPINFER_STRING(x)

const KernelTable& Table() {
  static const KernelTable table = [] {
    KernelTable t = reference::Table();
    t.name = DEEPINFER_NAME(DEEPINFER_TARGET);
    t.quantize_q8 = QuantizeQ8;
    t.round_q4u = RoundQ4u;
    t.pack_window = PackWindow;
    t.pack_kv = PackKv;
    t.pack_index_key = PackIndexKey;
    t.gemm = Gemm;
    t.attention = Attention;
    t.pool_pairs = PoolPairs;
    t.scale_bf16 = ScaleBf16;
    t.index_scores = IndexScores;
    t.candidates = Candidates;
    t.select = Select;
    t.rms_norm = RmsNorm;
    t.rope = Rope;
    t.mhc_mixes = MhcMixes;
    t.mhc_collapse = MhcCollapse;
    t.mhc_expand = MhcExpand;
    t.stream_mean = StreamMean;
    t.gate = Gate;
    t.swiglu_q8 = SwiGluQ8;
    t.combine = Combine;
    t.engram_gather = EngramGather;
    t.engram_mix = EngramMix;
    t.top_logits = TopLogits;
    return t;
  }();
  return table;
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
