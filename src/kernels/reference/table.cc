#include "kernels/reference/kernels.h"
#include "kernels/reference/reference.h"

namespace deepinfer::kernels::reference {

const KernelTable& Table() {
  static const KernelTable table = {
      .name = "reference",
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
  return table;
}

}  // namespace deepinfer::kernels::reference
