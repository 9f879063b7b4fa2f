#include "base/topology.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/cpu_quota.h"

namespace deepinfer {
namespace {

// The kernel refuses masks shorter than its own, whose length it does not tell.
constexpr int kMaxCpus = 1 << 16;

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

// The CPUs that hwloc sees; empty when it sees none.
std::vector<LogicalCpu> DescribeCpus() {
  std::vector<LogicalCpu> cpus;
  hwloc_topology_t topology = nullptr;
  if (::hwloc_topology_init(&topology) != 0) return cpus;
  ::hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  ::hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  ::hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  if (::hwloc_topology_load(topology) == 0) {
    hwloc_obj_t pu = nullptr;
    while ((pu = ::hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr) {
      const hwloc_obj_t core = ::hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
      const int id = static_cast<int>(pu->os_index);
      const int node = pu->nodeset == nullptr ? 0 : ::hwloc_bitmap_first(pu->nodeset);
      cpus.push_back({.id = id,
                      .core = core == nullptr ? -1 - id : static_cast<int>(core->logical_index),
                      .node = std::max(node, 0)});
    }
  }
  ::hwloc_topology_destroy(topology);
  return cpus;
}

MachineDescription DescribeMachine() {
  MachineDescription machine{DescribeCpus(), AllowedCpus(), CgroupCpuQuota("/")};
  if (machine.cpus.empty() && machine.allowed.empty()) {
    const int cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int id = 0; id < cpus; ++id) machine.allowed.push_back(id);
  }
  return machine;
}

}  // namespace

Topology MakeTopology(const MachineDescription& machine) {
  std::map<int, LogicalCpu> known;
  for (const LogicalCpu& cpu : machine.cpus) known.emplace(cpu.id, cpu);
  std::vector<int> allowed = machine.allowed;
  if (allowed.empty()) {
    for (const auto& [id, cpu] : known) allowed.push_back(id);
  }
  if (allowed.empty()) allowed.push_back(0);
  std::ranges::sort(allowed);

  // Known cores by (node, core); a CPU that is not known is a core by itself.
  std::map<std::pair<int, int>, Core> known_cores;
  Topology topology;
  for (const int id : allowed) {
    const auto found = known.find(id);
    if (found == known.end()) {
      topology.cores.push_back({.node = 0, .cpus = {id}});
      continue;
    }
    const LogicalCpu& cpu = found->second;
    Core& core = known_cores[{cpu.node, cpu.core}];
    core.node = cpu.node;
    core.cpus.push_back(id);
  }
  for (auto& [key, core] : known_cores) topology.cores.push_back(std::move(core));
  std::ranges::sort(topology.cores, {},
                    [](const Core& core) { return std::pair(core.node, core.cpus.front()); });
  for (const Core& core : topology.cores) {
    if (topology.nodes.empty() || topology.nodes.back() != core.node) {
      topology.nodes.push_back(core.node);
    }
  }
  const auto cores = static_cast<double>(topology.cores.size());
  topology.default_threads =
      std::max(1, static_cast<int>(std::min(cores, machine.quota.value_or(cores))));
  return topology;
}

const Topology& ProcessTopology() {
  static const Topology topology = MakeTopology(DescribeMachine());
  return topology;
}

int DefaultThreads() { return ProcessTopology().default_threads; }

std::vector<std::vector<int>> WorkerCpus(const Topology& topology, int threads) {
  const auto cores = static_cast<int64_t>(topology.cores.size());
  if (threads < 1 || threads > cores || topology.nodes.size() == 1) return {};
  std::map<int, std::vector<int>> node_cpus;
  for (const Core& core : topology.cores) {
    std::vector<int>& cpus = node_cpus[core.node];
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  for (auto& [node, cpus] : node_cpus) std::ranges::sort(cpus);
  std::vector<std::vector<int>> workers;
  for (int64_t i = 0; i < threads; ++i) {
    workers.push_back(node_cpus[topology.cores[i * cores / threads].node]);
  }
  return workers;
}

std::vector<int> AllowedCpus() {
  for (int capacity = CPU_SETSIZE; capacity <= kMaxCpus; capacity *= 2) {
    const CpuSet set(CPU_ALLOC(capacity));
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    if (set == nullptr) return {};
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> cpus;
    for (int id = 0; id < capacity; ++id) {
      if (CPU_ISSET_S(id, bytes, set.get())) cpus.push_back(id);
    }
    return cpus;
  }
  return {};
}

bool BindThread(pthread_t thread, std::span<const int> cpus) {
  if (cpus.empty()) return false;
  const auto [least, greatest] = std::ranges::minmax(cpus);
  if (least < 0 || greatest >= kMaxCpus) return false;
  const CpuSet set(CPU_ALLOC(greatest + 1));
  const size_t bytes = CPU_ALLOC_SIZE(greatest + 1);
  if (set == nullptr) return false;
  CPU_ZERO_S(bytes, set.get());
  for (const int id : cpus) CPU_SET_S(id, bytes, set.get());
  return ::pthread_setaffinity_np(thread, bytes, set.get()) == 0;
}

}  // namespace deepinfer
