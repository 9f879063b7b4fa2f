// A table with an empty entry would crash the first model that needs it.
#include <cstring>

#include "tests/unit/kernels/kernel_testing.h"

namespace deepinfer::kernels {
namespace {

// KernelTable is the name and then one function pointer an entry.
using Entry = void (*)();
constexpr size_t kEntries =
    (sizeof(KernelTable) - offsetof(KernelTable, quantize_q8)) / sizeof(Entry);

size_t EmptyEntries(const KernelTable& table) {
  size_t empty = 0;
  for (size_t i = 0; i < kEntries; ++i) {
    Entry entry = nullptr;
    std::memcpy(&entry,
                reinterpret_cast<const char*>(&table) + offsetof(KernelTable, quantize_q8) +
                    i * sizeof(Entry),
                sizeof entry);
    if (entry == nullptr) ++empty;
  }
  return empty;
}

TEST(Tables, EveryEntryOfEveryTargetIsSet) {
  EXPECT_EQ(EmptyEntries(KernelTable{}), kEntries);
  EXPECT_EQ(EmptyEntries(reference::Table()), 0u);
  ASSERT_FALSE(cpu::Targets().empty());
  for (const cpu::Target& target : cpu::Targets()) {
    EXPECT_EQ(EmptyEntries(*target.table), 0u) << target.name;
    EXPECT_STREQ(target.table->name, target.name);
  }
}

}  // namespace
}  // namespace deepinfer::kernels
