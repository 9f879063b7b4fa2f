// The head; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void TopLogits(ThreadPool& pool, const TopLogitsArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
