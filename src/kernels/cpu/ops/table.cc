#include "kernels/cpu/ops/gemm.h"
#include "kernels/cpu/ops/moe.h"
#include "kernels/reference/reference.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

#define DEEPINFER_STRING(x) #x
#define DEEPINFER_NAME(x) DEEPINFER_STRING(x)

const KernelTable& Table() {
  static const KernelTable table = [] {
    KernelTable t = reference::Table();
    t.name = DEEPINFER_NAME(DEEPINFER_TARGET);
    t.gemm = Gemm;
    t.swiglu_q8 = SwiGluQ8;
    t.combine = Combine;
    return t;
  }();
  return table;
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
