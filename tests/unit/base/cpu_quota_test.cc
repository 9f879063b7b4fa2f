#include "base/cpu_quota.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

// A folder with the files of /proc and /sys that tell of control groups.
class CpuQuotaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "deepinfer-quota-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const fs::path& name, const std::string& contents) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << contents;
  }
  void WriteV2(const std::string& group) {
    Write("proc/self/cgroup", "0::" + group + "\n");
    Write("proc/self/mountinfo",
          "22 1 0:20 / /sys rw - sysfs sysfs rw\n"
          "30 22 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  // The hierarchy's part below `mount_root` is mounted.
  void WriteV1(const std::string& group, const std::string& mount_root) {
    Write("proc/self/cgroup", "9:cpuset:/other\n4:cpu,cpuacct:" + group + "\n0::/\n");
    Write("proc/self/mountinfo", "31 30 0:28 " + mount_root +
                                     " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
                                     "rw,cpu,cpuacct\n"
                                     "33 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup "
                                     "rw,cpuset\n");
  }
  void WriteV1Limit(const std::string& group, int quota, int period) {
    const fs::path folder = "sys/fs/cgroup/cpu,cpuacct" + group;
    Write(folder / "cpu.cfs_quota_us", std::to_string(quota) + "\n");
    Write(folder / "cpu.cfs_period_us", std::to_string(period) + "\n");
  }

  fs::path root_;
};

TEST_F(CpuQuotaTest, ASystemThatTellsNothingHasNoLimit) {
  EXPECT_EQ(CgroupCpuQuota(root_), std::nullopt);
  EXPECT_EQ(CgroupCpuQuota(root_ / "missing"), std::nullopt);
}

TEST_F(CpuQuotaTest, Version2GivesQuotaByPeriod) {
  WriteV2("/");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 1.5);
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), std::nullopt);
}

TEST_F(CpuQuotaTest, TheTightestGroupAboveCounts) {
  WriteV2("/user.slice/app.scope");
  Write("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
  Write("sys/fs/cgroup/user.slice/app.scope/cpu.max", "300000 100000\n");
  Write("sys/fs/cgroup/other.slice/cpu.max", "10000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 2.0);
  Write("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 3.0);
}

TEST_F(CpuQuotaTest, Version1IsReadFromTheHierarchyWithTheCpuController) {
  WriteV1("/box", "/");
  WriteV1Limit("/box", 250000, 100000);
  EXPECT_EQ(CgroupCpuQuota(root_), 2.5);
  WriteV1Limit("/box", -1, 100000);
  EXPECT_EQ(CgroupCpuQuota(root_), std::nullopt);
}

TEST_F(CpuQuotaTest, AContainerSeesItsGroupAtTheMountsTop) {
  WriteV1("/docker/0123", "/docker/0123");
  WriteV1Limit("", 100000, 50000);
  EXPECT_EQ(CgroupCpuQuota(root_), 2.0);
  WriteV1("/docker/0123/inner", "/docker/0123");
  WriteV1Limit("/inner", 50000, 50000);
  EXPECT_EQ(CgroupCpuQuota(root_), 1.0);
  WriteV1("/../elsewhere", "/");
  EXPECT_EQ(CgroupCpuQuota(root_), 2.0) << "a group outside this name space";
}

TEST_F(CpuQuotaTest, OddFilesAreNoLimit) {
  WriteV2("/");
  for (const char* contents : {"", "-5 100000", "0 100000", "100000", "100000 0", "a b", "nan 1"}) {
    Write("sys/fs/cgroup/cpu.max", contents);
    EXPECT_EQ(CgroupCpuQuota(root_), std::nullopt) << contents;
  }
  Write("proc/self/mountinfo", "\n-\n1 2 3\n - cgroup2\n");
  Write("proc/self/cgroup", ":\n::\nx\n");
  EXPECT_EQ(CgroupCpuQuota(root_), std::nullopt);
}

}  // namespace
}  // namespace deepinfer
