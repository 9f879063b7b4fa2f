// What a reader of the benchmark's lines relies on: fields, nulls, quoting, medians.
#include "bench/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "bench/timing.h"

namespace deepinfer::bench {
namespace {

Record Example() {
  return {.name = "kernel.gemm",
          .params = {{"matrix", std::string("w,\"q\"")}, {"m", int64_t{16}}, {"x", 0.5}},
          .value = 30,
          .min = 20,
          .max = 40,
          .unit = "GB/s",
          .repetitions = 3,
          .ceiling = 40,
          .share = 0.75,
          .seconds = 0.25};
}

TEST(RecordTest, JsonHasEveryFieldAndTypedParams) {
  const auto json = nlohmann::json::parse(RecordJson(Example()));
  EXPECT_EQ(json["name"], "kernel.gemm");
  EXPECT_EQ(json["params"]["matrix"], "w,\"q\"");
  EXPECT_TRUE(json["params"]["m"].is_number_integer());
  EXPECT_EQ(json["params"]["x"], 0.5);
  EXPECT_EQ(json["value"], 30);
  EXPECT_EQ(json["min"], 20);
  EXPECT_EQ(json["max"], 40);
  EXPECT_EQ(json["unit"], "GB/s");
  EXPECT_EQ(json["repetitions"], 3);
  EXPECT_EQ(json["ceiling"], 40);
  EXPECT_EQ(json["share"], 0.75);
  EXPECT_EQ(json["seconds"], 0.25);
}

TEST(RecordTest, AbsentAndInfiniteNumbersAreNull) {
  Record record = Example();
  record.ceiling.reset();
  record.share.reset();
  record.max = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(RecordJson(record));
  EXPECT_TRUE(json.contains("ceiling") && json["ceiling"].is_null());
  EXPECT_TRUE(json.contains("share") && json["share"].is_null());
  EXPECT_TRUE(json["max"].is_null());
}

TEST(RecordTest, CsvQuotesFieldsAndHasAsManyAsItsHeader) {
  EXPECT_EQ(CsvHeader(), "name,params,value,unit,min,max,repetitions,ceiling,share,seconds");
  EXPECT_EQ(RecordCsv(Example()),
            "kernel.gemm,\"matrix=w,\"\"q\"\" m=16 x=0.5\",30,GB/s,20,40,3,40,0.75,0.25");
}

TEST(RecordTest, TheTableShowsMedianShareTimeAndParams) {
  const std::string row = RecordRow(Example());
  for (const char* part : {"kernel.gemm", "30.00", "GB/s", "75.0 %", "250.0 ms", "m=16"}) {
    EXPECT_THAT(row, ::testing::HasSubstr(part));
  }
}

TEST(TimingTest, TheMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  const Timing timing = Summarise(std::vector<double>{4, 1, 3, 9});
  EXPECT_EQ(timing.median, 3.5);
  EXPECT_EQ(timing.min, 1);
  EXPECT_EQ(timing.max, 9);
  EXPECT_EQ(timing.repetitions, 4);
}

TEST(TimingTest, TheLeastTimeGivesTheGreatestRate) {
  Record record;
  SetRate({.median = 2, .min = 1, .max = 4, .repetitions = 3}, 8e9, 1e9, 5.0, record);
  EXPECT_EQ(record.value, 4);
  EXPECT_EQ(record.min, 2);
  EXPECT_EQ(record.max, 8);
  EXPECT_EQ(record.seconds, 2);
  EXPECT_EQ(record.share, 0.8);
}

TEST(TimingTest, ShortWorkIsCalledUntilTheLeastTimeIsFilled) {
  int64_t calls = 0;
  const Timing timing = Repeat({.repeat = 3, .min_seconds = 0.002}, [&] { ++calls; });
  EXPECT_EQ(timing.repetitions, 3);
  EXPECT_GT(calls, 100);
  EXPECT_LT(timing.max, 0.002);
}

}  // namespace
}  // namespace deepinfer::bench
