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

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

#define DEEPINFER_STRING(x) #x
#define DEEPINFER_NAME(x) DEEPINFER_STRING(x)

const KernelTable& Table() {
  static constexpr KernelTable kTable = {
      .name = DEEPINFER_NAME(DEEPINFER_TARGET),
      .quantize_q8 = QuantizeQ8,
      .round_q4u = RoundQ4u,
      .pack_window = PackWindow,
      .pack_kv = PackKv,
      .pack_index_key = PackIndexKey,
      .gemm = Gemm,
      .rms_norm = RmsNorm,
      .rope = Rope,
      .mhc_mixes = MhcMixes,
      .mhc_collapse = MhcCollapse,
      .mhc_expand = MhcExpand,
      .stream_mean = StreamMean,
      .attention = Attention,
      .pool_pairs = PoolPairs,
      .scale_bf16 = ScaleBf16,
      .index_scores = IndexScores,
      .candidates = Candidates,
      .select = Select,
      .gate = Gate,
      .swiglu_q8 = SwiGluQ8,
      .combine = Combine,
      .engram_gather = EngramGather,
      .engram_mix = EngramMix,
      .top_logits = TopLogits,
  };
  return kTable;
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
