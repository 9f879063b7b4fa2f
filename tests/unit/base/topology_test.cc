#include "base/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using CpuLists = std::vector<std::vector<int>>;

// Linux numbers the first hyper-threads of all cores before the second ones.
MachineDescription Machine(int sockets, int cores_a_socket, int threads_a_core) {
  MachineDescription machine;
  const int cores = sockets * cores_a_socket;
  for (int id = 0; id < cores * threads_a_core; ++id) {
    machine.cpus.push_back({.id = id, .core = id % cores, .node = id % cores / cores_a_socket});
  }
  for (const LogicalCpu& cpu : machine.cpus) machine.allowed.push_back(cpu.id);
  return machine;
}

std::vector<int> FirstCpus(const Topology& topology) {
  std::vector<int> cpus;
  for (const Core& core : topology.cores) cpus.push_back(core.cpus.front());
  return cpus;
}

TEST(Topology, HyperThreadsOfACoreCountOnceAndCoresStandByNode) {
  const Topology topology = MakeTopology(Machine(2, 4, 2));
  ASSERT_THAT(topology.cores, SizeIs(8));
  EXPECT_EQ(topology.default_threads, 8);
  EXPECT_THAT(topology.nodes, ElementsAre(0, 1));
  EXPECT_THAT(topology.cores[0].cpus, ElementsAre(0, 8));
  EXPECT_THAT(topology.cores[7].cpus, ElementsAre(7, 15));
  EXPECT_EQ(topology.cores[3].node, 0);
  EXPECT_EQ(topology.cores[4].node, 1);
}

TEST(Topology, QuotasAreRoundedDownButLeaveOneThread) {
  MachineDescription machine = Machine(1, 8, 1);
  for (const auto& [quota, threads] : {std::pair(1.5, 1), {0.25, 1}, {3.999, 3}, {100.0, 8}}) {
    machine.quota = quota;
    EXPECT_EQ(MakeTopology(machine).default_threads, threads) << quota;
  }
  EXPECT_THAT(MakeTopology(machine).cores, SizeIs(8)) << "a quota takes no cores away";
}

TEST(Topology, AnAffinityToOneHyperThreadOfEachCoreKeepsAllCores) {
  MachineDescription machine = Machine(2, 2, 2);
  machine.allowed = {4, 5, 6, 7};
  const Topology topology = MakeTopology(machine);
  EXPECT_EQ(topology.default_threads, 4);
  EXPECT_THAT(FirstCpus(topology), ElementsAre(4, 5, 6, 7));
}

TEST(Topology, AnAffinityToBothHyperThreadsOfACoreLeavesOneCore) {
  MachineDescription machine = Machine(2, 2, 2);
  machine.allowed = {6, 2};
  const Topology topology = MakeTopology(machine);
  ASSERT_THAT(topology.cores, SizeIs(1));
  EXPECT_THAT(topology.cores[0].cpus, ElementsAre(2, 6));
  EXPECT_THAT(topology.nodes, ElementsAre(1));
  EXPECT_EQ(topology.default_threads, 1);
}

TEST(Topology, CpusThatTheSystemDoesNotDescribeAreCoresOfOneNode) {
  const Topology topology = MakeTopology({.cpus = {}, .allowed = {3, 1, 2}, .quota = {}});
  EXPECT_THAT(FirstCpus(topology), ElementsAre(1, 2, 3));
  EXPECT_THAT(topology.nodes, ElementsAre(0));
  EXPECT_EQ(topology.default_threads, 3);
}

TEST(Topology, KnowingNothingMeansOneThread) {
  const Topology topology = MakeTopology({});
  EXPECT_EQ(topology.default_threads, 1);
  EXPECT_THAT(topology.cores, SizeIs(1));
}

TEST(Topology, CoresOfDifferentNodesMayBearTheSameNumber) {
  const Topology topology =
      MakeTopology({.cpus = {{.id = 0, .core = 0, .node = 0}, {.id = 1, .core = 0, .node = 1}},
                    .allowed = {},
                    .quota = {}});
  EXPECT_EQ(topology.default_threads, 2);
}

TEST(WorkerCpus, WorkersGetANodeEachInProportionSoThatTwoProgramsDoNotMeetOnACore) {
  const Topology topology = MakeTopology(Machine(2, 3, 1));
  const std::vector<int> node0 = {0, 1, 2};
  const std::vector<int> node1 = {3, 4, 5};
  EXPECT_EQ(WorkerCpus(topology, 6), (CpuLists{node0, node0, node0, node1, node1, node1}));
  EXPECT_EQ(WorkerCpus(topology, 4), (CpuLists{node0, node0, node1, node1}));
  EXPECT_EQ(WorkerCpus(topology, 2), (CpuLists{node0, node1}));
  EXPECT_EQ(WorkerCpus(MakeTopology(Machine(2, 1, 2)), 2), (CpuLists{{0, 2}, {1, 3}}));

  MachineDescription uneven = Machine(2, 3, 1);
  uneven.allowed = {0, 1, 2, 5};  // three cores of node 0, one of node 1
  for (int threads = 1; threads <= 4; ++threads) {
    const CpuLists workers = WorkerCpus(MakeTopology(uneven), threads);
    ASSERT_THAT(workers, SizeIs(threads));
    EXPECT_LE(std::ranges::count(workers, std::vector<int>{5}), 1);
    EXPECT_TRUE(std::ranges::is_sorted(workers)) << "neighbours share a node";
  }
}

TEST(WorkerCpus, NothingIsBoundWhereItCouldOnlyHurt) {
  for (const int threads : {1, 4, 8}) {
    EXPECT_THAT(WorkerCpus(MakeTopology(Machine(1, 8, 1)), threads), IsEmpty()) << "one node";
  }
  EXPECT_THAT(WorkerCpus(MakeTopology(Machine(2, 2, 2)), 5), IsEmpty()) << "too many threads";
  EXPECT_THAT(WorkerCpus(MakeTopology(Machine(2, 2, 2)), 0), IsEmpty());
}

TEST(ProcessTopology, HasThisProcessesCpusAndNoOthers) {
  const Topology& topology = ProcessTopology();
  std::vector<int> cpus;
  for (const Core& core : topology.cores)
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(cpus);
  EXPECT_EQ(cpus, AllowedCpus());
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), std::ssize(topology.cores));
}

TEST(BindThread, RefusesCpusThatDoNotExistAndChangesNothingThen) {
  const std::vector<int> before = AllowedCpus();
  for (const std::vector<int>& cpus : CpuLists{{}, {-1}, {60000}, {1 << 20}}) {
    EXPECT_FALSE(BindThread(::pthread_self(), cpus));
  }
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(BindThread, ABoundThreadDoesNotChangeTheProcessTopology) {
  const int threads = DefaultThreads();
  std::thread([&] {
    EXPECT_TRUE(BindThread(::pthread_self(), std::vector<int>{AllowedCpus().front()}));
    EXPECT_THAT(AllowedCpus(), SizeIs(1));
    EXPECT_EQ(DefaultThreads(), threads);
  }).join();
}

}  // namespace
}  // namespace deepinfer
