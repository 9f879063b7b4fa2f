// Declarations of the reference kernels; contracts stand in kernel_table.h.
#pragma once

#include "kernels/kernel_table.h"

namespace deepinfer::kernels::reference {

void QuantizeQ8(ThreadPool& pool, const RowsView& x, const Q8Rows& out);
void RoundQ4u(ThreadPool& pool, bf16* x, int64_t rows, int64_t cols);
void PackWindow(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
void PackKv(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);
void PackIndexKey(ThreadPool& pool, const bf16* x, int64_t rows, int64_t dim, uint8_t* const* out);

void Gemm(ThreadPool& pool, const GemmItem* items, int64_t count);

void RmsNorm(ThreadPool& pool, const RowsView& x, const bf16* weight, float eps, bf16* y);
void Rope(ThreadPool& pool, bf16* x, int64_t rows, int64_t heads, int64_t dim, int64_t rope_dim,
          const float* cos, const float* sin, bool inverse);

void MhcMixes(ThreadPool& pool, const MhcArgs& args);
void MhcCollapse(ThreadPool& pool, const bf16* h, const float* pre, int64_t rows, int streams,
                 int64_t hidden, bf16* x);
void MhcExpand(ThreadPool& pool, const bf16* y, const float* post, const float* comb, int64_t rows,
               int streams, int64_t hidden, bf16* h);
void StreamMean(ThreadPool& pool, const bf16* h, int64_t rows, int streams, int64_t hidden,
                bf16* tap, int64_t tap_stride);

void Attention(ThreadPool& pool, const AttentionArgs& args);

void PoolPairs(ThreadPool& pool, const float* k, const float* g, int64_t groups, int64_t dim,
               bf16* out);
void ScaleBf16(ThreadPool& pool, bf16* w, int64_t count, float factor);
void IndexScores(ThreadPool& pool, const IndexScoreArgs& args);
void Candidates(ThreadPool& pool, const CandidateArgs& args);
void Select(ThreadPool& pool, const SelectArgs& args);

void Gate(ThreadPool& pool, const GateArgs& args);
void SwiGluQ8(ThreadPool& pool, const SwiGluArgs& args);
void Combine(ThreadPool& pool, const CombineArgs& args);

void EngramGather(ThreadPool& pool, const EngramGatherArgs& args);
void EngramMix(ThreadPool& pool, const EngramMixArgs& args);

void TopLogits(ThreadPool& pool, const TopLogitsArgs& args);

}  // namespace deepinfer::kernels::reference
