// Products of attention and indexer whose factors are bf16 values, hence exact in fp32. They stand
// in a file of their own that is compiled with contraction, as gemm.cc is.
#pragma once

#include <cstdint>

namespace deepinfer::kernels::reference {

// dots[i] = a . b_i for `count` rows b_i of `dim` values, rows `stride` floats apart; dim and
// stride are multiples of 16. Sum order of reference.h.
void ExactDots(const float* a, const float* b, int64_t count, int64_t dim, int64_t stride,
               float* dots);

// acc[d] += sum over n of p[n] * v_n[d], n ascending, for `count` rows of `dim` values.
void ExactAccumulate(const float* p, const float* v, int64_t count, int64_t dim, int64_t stride,
                     float* acc);

}  // namespace deepinfer::kernels::reference
