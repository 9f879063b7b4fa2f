// One measured number and the forms in which it is printed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace deepinfer::bench {

struct Param {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

struct Record {
  std::string name;           // what was measured: "kernel.gemm", "decode.speed"
  std::vector<Param> params;  // under which conditions
  // Median, least and greatest of the repetitions, in `unit`.
  double value = 0, min = 0, max = 0;
  std::string unit;
  int64_t repetitions = 1;
  // What the machine could do at best, in `unit`, and value / ceiling; none where there is no such
  // number.
  std::optional<double> ceiling = std::nullopt;
  // value / ceiling, or the part of a whole that the value is.
  std::optional<double> share = std::nullopt;
  // Median seconds of what was repeated; none where the value is no time or rate.
  std::optional<double> seconds = std::nullopt;
};

// Takes every record as soon as it is measured. An error ends the benchmark.
using RecordSink = std::function<Status(const Record&)>;

// {"name", "params", "value", "unit", "min", "max", "repetitions", "ceiling", "share", "seconds"}
// on one line, without a line break; what is absent is null.
std::string RecordJson(const Record& record);

// The same fields as columns; params are one field of NAME=VALUE words. No line break.
std::string CsvHeader();
std::string RecordCsv(const Record& record);

// A line for people, in columns of fixed width. No line break.
std::string TableHeader();
std::string RecordRow(const Record& record);

}  // namespace deepinfer::bench
