// The reference back end: plain loops on the CPU, the oracle of every other back end.
//
// Sum order. Every dot product and every sum over a row runs in 16 lanes: element k goes to lane
// k mod 16, a lane adds in ascending k, and the lanes are joined as a balanced tree (lane i with
// lane i + 8, then i + 4, ...). The order follows from the row's length alone. Products of the
// checkpoint's formats (e4m3, e2m1, bf16, with power-of-two scales) are exact in fp32, so fusing
// product and sum changes nothing.
#pragma once

#include "kernels/kernel_table.h"

namespace deepinfer::kernels::reference {

const KernelTable& Table();

}  // namespace deepinfer::kernels::reference
