#include "kernels/cpu/ceiling.h"

#include <string_view>

namespace deepinfer::kernels::cpu {

#if defined(__x86_64__)
namespace scalar {
const CeilingKernels& Ceiling();
}
namespace avx2 {
const CeilingKernels& Ceiling();
}
namespace avx512 {
const CeilingKernels& Ceiling();
}
namespace avx512_bf16 {
const CeilingKernels& Ceiling();
}
#elif defined(__aarch64__)
namespace neon {
const CeilingKernels& Ceiling();
}
#else
namespace scalar {
const CeilingKernels& Ceiling();
}
#endif

const CeilingKernels& CeilingOf(const KernelTable& table) {
#if defined(__x86_64__)
  const std::string_view name = table.name;
  if (name == "avx2") return avx2::Ceiling();
  if (name == "avx512") return avx512::Ceiling();
  if (name == "avx512_bf16") return avx512_bf16::Ceiling();
  return scalar::Ceiling();
#elif defined(__aarch64__)
  static_cast<void>(table);
  return neon::Ceiling();
#else
  static_cast<void>(table);
  return scalar::Ceiling();
#endif
}

}  // namespace deepinfer::kernels::cpu
