#include "base/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

// A comma-separated list contains `word`.
bool Lists(const std::string& list, std::string_view word) {
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

// One hierarchy: the process's group in it and where its files are.
struct Hierarchy {
  bool is_v2 = false;
  fs::path mount;  // as the system names it
  fs::path group;  // below mount
};

// Where the hierarchy that is mounted here has this process. A mount shows the part of the
// hierarchy below `mount_root`; in a container the group's path may be of another name space, and
// then the mount's top is the process's own group.
fs::path GroupBelow(const fs::path& mount_root, const fs::path& group) {
  const fs::path relative = group.lexically_relative(mount_root);
  if (relative.empty() || relative == "." || *relative.begin() == "..") return {};
  return relative;
}

// The group's path in the hierarchy with the controller cpu (version 1) or in version 2's.
std::optional<std::string> GroupPath(const fs::path& root, bool is_v2) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // id:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? controllers.empty() : Lists(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::vector<Hierarchy> FindHierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // id parent device root mount options [optional ...] - type source super-options
    std::istringstream words(line);
    std::string skipped, mount_root, mount, type, super_options;
    words >> skipped >> skipped >> skipped >> mount_root >> mount;
    while (words >> skipped && skipped != "-") {
    }
    words >> type >> skipped >> super_options;
    const bool is_v2 = type == "cgroup2";
    if (!is_v2 && !(type == "cgroup" && Lists(super_options, "cpu"))) continue;
    const std::optional<std::string> group = GroupPath(root, is_v2);
    if (group) found.push_back({is_v2, mount, GroupBelow(mount_root, *group)});
  }
  return found;
}

// The limit of one group; none for "max", -1, or files that are missing or odd.
std::optional<double> GroupQuota(const fs::path& folder, bool is_v2) {
  double quota = 0;
  double period = 0;
  if (is_v2) {
    std::ifstream(folder / "cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

}  // namespace

std::optional<double> CgroupCpuQuota(const fs::path& root) {
  std::optional<double> least;
  for (const Hierarchy& hierarchy : FindHierarchies(root)) {
    const fs::path mount = root / hierarchy.mount.relative_path();
    for (fs::path group = hierarchy.group;; group = group.parent_path()) {
      const std::optional<double> quota = GroupQuota(mount / group, hierarchy.is_v2);
      if (quota) least = std::min(*quota, least.value_or(*quota));
      if (group.empty()) break;
    }
  }
  return least;
}

}  // namespace deepinfer
