#include "bench/record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace deepinfer::bench {
namespace {

using Json = nlohmann::ordered_json;

Json Number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::string ParamText(const Param& param) {
  return std::visit([&](const auto& value) { return fmt::format("{}={}", param.name, value); },
                    param.value);
}

std::string ParamsText(const Record& record) {
  std::string text;
  for (const Param& param : record.params) {
    if (!text.empty()) text += ' ';
    text += ParamText(param);
  }
  return text;
}

// Four significant digits.
std::string Short(double value) {
  if (value == 0) return "0";
  const double magnitude = std::fabs(value);
  if (magnitude >= 1e7 || magnitude < 1e-3) return fmt::format("{:.3e}", value);
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(magnitude))));
  return fmt::format("{:.{}f}", value, decimals);
}

std::string Time(const std::optional<double>& seconds) {
  if (!seconds) return "";
  if (*seconds < 1e-3) return Short(*seconds * 1e6) + " us";
  if (*seconds < 1) return Short(*seconds * 1e3) + " ms";
  return Short(*seconds) + " s";
}

// A field as RFC 4180 quotes it.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string CsvNumber(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string RecordJson(const Record& record) {
  Json params = Json::object();
  for (const Param& param : record.params) {
    std::visit([&](const auto& value) { params[param.name] = value; }, param.value);
  }
  const Json json = {{"name", record.name},
                     {"params", params},
                     {"value", Number(record.value)},
                     {"unit", record.unit},
                     {"min", Number(record.min)},
                     {"max", Number(record.max)},
                     {"repetitions", record.repetitions},
                     {"ceiling", Number(record.ceiling)},
                     {"share", Number(record.share)},
                     {"seconds", Number(record.seconds)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string CsvHeader() {
  return "name,params,value,unit,min,max,repetitions,ceiling,share,seconds";
}

std::string RecordCsv(const Record& record) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", Quoted(record.name),
                     Quoted(ParamsText(record)), CsvNumber(record.value), Quoted(record.unit),
                     CsvNumber(record.min), CsvNumber(record.max), record.repetitions,
                     CsvNumber(record.ceiling), CsvNumber(record.share), CsvNumber(record.seconds));
}

std::string TableHeader() {
  return fmt::format("{:<22} {:>10} {:<9} {:>9} {:>9} {:>9} {:>8} {:>10}  {}", "name", "median",
                     "unit", "min", "max", "ceiling", "share", "time", "params");
}

std::string RecordRow(const Record& record) {
  return fmt::format("{:<22} {:>10} {:<9} {:>9} {:>9} {:>9} {:>8} {:>10}  {}", record.name,
                     Short(record.value), record.unit, Short(record.min), Short(record.max),
                     record.ceiling ? Short(*record.ceiling) : "",
                     record.share ? fmt::format("{:.1f} %", *record.share * 100) : "",
                     Time(record.seconds), ParamsText(record));
}

}  // namespace deepinfer::bench
