// Counts and times the calls that go through a kernel table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"

namespace deepinfer::bench {

struct KernelCount {
  std::string_view name;  // the table's entry; products are "gemm_" and their kind
  int64_t calls = 0;
  double seconds = 0;
};

// While one lives, ProfiledTable() forwards to `table` and adds to it. At most one at a time in a
// process, and calls from one thread at a time: table entries are plain functions, so the profile
// they add to is global.
class KernelProfile {
 public:
  // `table` must outlive it.
  explicit KernelProfile(const kernels::KernelTable& table);
  ~KernelProfile();
  KernelProfile(const KernelProfile&) = delete;
  KernelProfile& operator=(const KernelProfile&) = delete;

  void Clear();
  // Entries that were called, by falling time. A batch of products of several kinds counts as the
  // kind of its largest.
  std::vector<KernelCount> counts() const;
  double kernel_seconds() const;
  // Of all products together: multiplications and additions, time, and bytes of FP4 weights (the
  // routed experts), each matrix as often as a product read it.
  double gemm_operations() const { return gemm_operations_; }
  double gemm_seconds() const;
  double fp4_bytes() const { return fp4_bytes_; }

 private:
  friend class ProfiledCall;
  friend struct ProfiledGemm;

  const kernels::KernelTable& table_;
  std::vector<KernelCount> counts_;
  double gemm_operations_ = 0;
  double fp4_bytes_ = 0;
};

// A table whose every entry forwards. Use it only while a KernelProfile lives.
const kernels::KernelTable& ProfiledTable();

}  // namespace deepinfer::bench
