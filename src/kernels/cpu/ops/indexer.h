// Compressor pooling and index scores; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void PoolPairs(ThreadPool& pool, const float* k, const float* g, int64_t groups, int64_t dim,
               bf16* out);
void ScaleBf16(ThreadPool& pool, bf16* w, int64_t count, float factor);
void IndexScores(ThreadPool& pool, const IndexScoreArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
