// Hyper-connections; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void MhcMixes(ThreadPool& pool, const MhcArgs& args);
void MhcCollapse(ThreadPool& pool, const bf16* h, const float* pre, int64_t rows, int streams,
                 int64_t hidden, bf16* x);
void MhcExpand(ThreadPool& pool, const bf16* y, const float* post, const float* comb, int64_t rows,
               int streams, int64_t hidden, bf16* h);
void StreamMean(ThreadPool& pool, const bf16* h, int64_t rows, int streams, int64_t hidden,
                bf16* tap, int64_t tap_stride);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
