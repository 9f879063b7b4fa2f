// Candidate blocks and selection; contracts in kernel_table.h.
#pragma once

#include "kernels/cpu/ops/target.h"
#include "kernels/kernel_table.h"

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

void Candidates(ThreadPool& pool, const CandidateArgs& args);
void Select(ThreadPool& pool, const SelectArgs& args);

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
