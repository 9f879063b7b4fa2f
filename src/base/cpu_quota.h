// The limit that control groups put on a process's CPU time.
#pragma once

#include <filesystem>
#include <optional>

namespace deepinfer {

// CPU seconds a second that this process's control groups leave it: the least of the limits of its
// group and the groups above, version 2 (cpu.max) or 1 (cpu.cfs_quota_us, cpu.cfs_period_us). None
// when there is no limit or the system does not tell. `root` is where the system's /proc and /sys
// are found: "/" but in tests.
std::optional<double> CgroupCpuQuota(const std::filesystem::path& root);

}  // namespace deepinfer
