// Which processors this process may compute on: cores, hyper-threads, memory nodes and limits.
#pragma once

#include <pthread.h>

#include <optional>
#include <span>
#include <vector>

namespace deepinfer {

// CPUs and nodes bear the operating system's numbers. A CPU is one hardware thread.
struct LogicalCpu {
  int id = 0;
  int core = 0;  // any number, the same for the hyper-threads of one core
  int node = 0;  // NUMA node
};

// What the system tells about the machine and about this process's place in it.
struct MachineDescription {
  std::vector<LogicalCpu> cpus;  // CPUs not listed count as cores of node 0
  std::vector<int> allowed;      // affinity mask; empty: all of `cpus`
  std::optional<double> quota;   // CPU time a second (cgroup); none: unlimited. > 0
};

struct Core {
  int node = 0;
  std::vector<int> cpus;  // its allowed hyper-threads, ascending; at least one
};

struct Topology {
  std::vector<Core> cores;  // at least one; by node, then by first CPU
  std::vector<int> nodes;   // of the cores, ascending
  // As many as run at full speed at once: one a core, as hyper-threads share the units that
  // computing waits for, and no more than the quota, rounded down. At least 1.
  int default_threads = 1;
};

Topology MakeTopology(const MachineDescription& machine);

// This process's topology as its first call finds it. A thread that a pool has bound therefore does
// not change it. Where the system does not tell, every CPU is a core of one node. Thread-safe.
const Topology& ProcessTopology();
int DefaultThreads();

// For each of `threads` workers the CPUs to bind it to (ThreadPoolOptions::worker_cpus): workers
// spread over the nodes in proportion to their cores, neighbours on one node, each bound to all
// cores of its node. Not to one core: the threads of two programs would meet there while other
// cores idle. Empty where there is one node, and where threads outnumber cores, since the system
// then shares out cores better than a fixed place would.
std::vector<std::vector<int>> WorkerCpus(const Topology& topology, int threads);

// The CPUs the calling thread may run on, ascending; empty when the system does not tell.
std::vector<int> AllowedCpus();
// Binds a live thread to CPUs; false, with nothing changed, when the system refuses.
bool BindThread(pthread_t thread, std::span<const int> cpus);

}  // namespace deepinfer
