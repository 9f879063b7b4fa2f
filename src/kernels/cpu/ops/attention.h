// Core attention; contract in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void Attention(ThreadPool& pool, const AttentionArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
