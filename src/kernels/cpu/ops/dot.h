// Dot products along K in steps of 32 elements, in the target's best form: fp32 lanes, or bf16
// pairs where the machine multiplies those.
//
// Per target (dot_f32.h, dot_bf16.h):
//   DotElement    how an expanded element is stored: float or bf16, both exact for every format.
//   DotVec        32 consecutive elements in registers.
//   LoadDot, StoreDot, ZeroDot.
//   DotAdd(acc, x, w): acc plus the 32 products, on 16 lanes. The order of the sum is the target's
//     and fixed: fp32 targets put element k on lane k mod 16, k ascending; bf16 targets put
//     elements 2i and 2i + 1 on lane i with one instruction.
//   ScaleDot(v, code): v times 2^(code - 127), exact. Products of scales lie within 2^-100 to 2^100
//     (weights: tensor/weight_scale.h).
//   ExpandFp8(codes): 64 e4m3 codes, unscaled; ExpandFp8Half: 32 codes and zeros behind.
//   ExpandFp4Codes(codes, scale): 32 e2m1 codes with their e8m0 scale.
//   ExpandFp4Shuffled(codes, s0, s1): 64 e2m1 codes with the e8m0 scales of their halves, every 32
//     elements in the target's cheapest order, which ShuffleAsFp4 gives to elements that are in
//     order; ExpandFp4ShuffledHalf: 32 codes and zeros behind.
//   FromBf16(p): 32 bf16 elements; FromBf16First(p, n): the first n, zeros behind (0 <= n <= 32).
//   kTileRows x kTileCols: the register tile of a product of many rows. kGemvCols: weight rows in
//     flight when one row is multiplied, kGemvColsFew when two to four are. kFewRows: rows up to
//     which weights are expanded in registers.
#pragma once

#include "kernels/cpu/ops/simd.h"

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#include "kernels/cpu/ops/dot_bf16.h"
#else
#include "kernels/cpu/ops/dot_f32.h"
#endif
