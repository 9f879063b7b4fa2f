// Whatever the text is: an error with a message, or a table that reads back as it is written.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spec/calibration.h"
#include "spec/cost_table.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto costs = ParseCostTable(text, "fuzz");
  if (costs) {
    const auto again = ParseCostTable(CostTableJson(*costs), "fuzz");
    Require(again && *again == *costs);
    double before = 0;
    for (const int64_t count : {1, 2, 3, 7, 64, 1000}) {
      Require(costs->verify.At(count) >= before);
      before = costs->verify.At(count);
    }
  } else {
    Require(!costs.error().message.empty());
  }
  const auto temperatures = ParseTemperatureTable(text, 5);
  if (temperatures) {
    const auto again = ParseTemperatureTable(TemperatureTableJson(*temperatures), 5);
    Require(again && *again == *temperatures);
  } else {
    Require(!temperatures.error().message.empty());
  }
  return 0;
}
