// The routing score, which takes the C library's double precision: compiled once, for the
// architecture's base, so that every target gives the same bits.
#pragma once

#include <cstdint>

namespace deepinfer::kernels::cpu {

// scores[i] = sqrt(softplus(logits[i])), softplus in double precision and rounded to fp32.
void RouteScores(const float* logits, int64_t count, float* scores);

}  // namespace deepinfer::kernels::cpu
