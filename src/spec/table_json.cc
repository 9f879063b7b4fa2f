// The two tables as JSON. Layouts: docs/speculation.md, "Files".
#include <nlohmann/json.hpp>

#include "config/strict_json.h"
#include "spec/calibration.h"
#include "spec/cost_table.h"

namespace deepinfer::spec {
namespace {

using nlohmann::json;

constexpr const char* kCostFormat = "deepinfer-step-costs";
constexpr const char* kTemperatureFormat = "deepinfer-confidence-temperatures";
constexpr int64_t kVersion = 1;

tl::unexpected<Error> Wrong(std::string_view member, const json& value, std::string_view wanted) {
  return MakeError(ErrorCode::kDataLoss, "\"{}\" is {}, not {}", member, ShownJson(value), wanted);
}

// An object of exactly these members.
Status CheckMembers(const json& object, std::string_view what,
                    std::initializer_list<const char*> members) {
  if (!object.is_object()) return Wrong(what, object, "an object");
  for (const char* member : members) {
    if (!object.contains(member)) {
      return MakeError(ErrorCode::kDataLoss, "{} has no member \"{}\"", what, member);
    }
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(members.begin(), members.end(), name) == members.end()) {
      return MakeError(ErrorCode::kDataLoss, "{} has an unknown member {}", what, ShownJson(name));
    }
  }
  return {};
}

Status CheckHeader(const json& root, const char* format) {
  if (root["format"] != format) return Wrong("format", root["format"], json(format).dump());
  if (!root["version"].is_number_integer() || root["version"] != kVersion) {
    return Wrong("version", root["version"], std::to_string(kVersion));
  }
  return {};
}

Result<int64_t> Integer(const json& value, std::string_view member) {
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
  if (!fits) return Wrong(member, value, "an integer in [0, 2^63)");
  return value.get<int64_t>();
}

json CurveJson(const CostCurve& curve) {
  json points = json::array();
  for (const CostPoint& point : curve.points()) points.push_back({point.count, point.seconds});
  return {{"padded_until", curve.padded_until()}, {"points", std::move(points)}};
}

Result<CostCurve> ParseCurve(const json& value, std::string_view what) {
  DI_RETURN_IF_ERROR(CheckMembers(value, what, {"padded_until", "points"}));
  DI_ASSIGN_OR_RETURN(const int64_t padded_until, Integer(value["padded_until"], "padded_until"));
  if (!value["points"].is_array()) return Wrong("points", value["points"], "an array");
  std::vector<CostPoint> points;
  for (const json& point : value["points"]) {
    if (!point.is_array() || point.size() != 2 || !point[1].is_number()) {
      return Wrong("points", point, "a pair of a count and seconds");
    }
    DI_ASSIGN_OR_RETURN(const int64_t count, Integer(point[0], "points"));
    points.push_back({count, point[1].get<double>()});
  }
  auto curve = CostCurve::Create(std::move(points), padded_until);
  if (!curve) return Forward(std::move(curve).error(), std::string(what));
  return curve;
}

}  // namespace

std::string CostTableJson(const CostTable& table) {
  return json{{"format", kCostFormat},
              {"version", kVersion},
              {"device", table.device},
              {"verify", CurveJson(table.verify)},
              {"draft", CurveJson(table.draft)}}
             .dump() +
         "\n";
}

Result<CostTable> ParseCostTable(std::string_view text, std::string_view device) {
  DI_ASSIGN_OR_RETURN(const json root, ParseStrictJson(text, "the cost table"));
  DI_RETURN_IF_ERROR(
      CheckMembers(root, "the cost table", {"format", "version", "device", "verify", "draft"}));
  DI_RETURN_IF_ERROR(CheckHeader(root, kCostFormat));
  if (root["device"] != device) return Wrong("device", root["device"], json(device).dump());
  CostTable table{.device = std::string(device), .verify = {}, .draft = {}};
  DI_ASSIGN_OR_RETURN(table.verify, ParseCurve(root["verify"], "verify"));
  DI_ASSIGN_OR_RETURN(table.draft, ParseCurve(root["draft"], "draft"));
  return table;
}

std::string TemperatureTableJson(const TemperatureTable& table) {
  const auto temperatures = table.temperatures();
  return json{{"format", kTemperatureFormat},
              {"version", kVersion},
              {"block_size", table.block_size()},
              {"temperatures", std::vector<double>(temperatures.begin(), temperatures.end())}}
             .dump() +
         "\n";
}

Result<TemperatureTable> ParseTemperatureTable(std::string_view text, int64_t block_size) {
  DI_ASSIGN_OR_RETURN(const json root, ParseStrictJson(text, "the temperature table"));
  DI_RETURN_IF_ERROR(CheckMembers(root, "the temperature table",
                                  {"format", "version", "block_size", "temperatures"}));
  DI_RETURN_IF_ERROR(CheckHeader(root, kTemperatureFormat));
  DI_ASSIGN_OR_RETURN(const int64_t size, Integer(root["block_size"], "block_size"));
  if (size != block_size) {
    return Wrong("block_size", root["block_size"],
                 std::to_string(block_size) + ", the checkpoint's");
  }
  const json& values = root["temperatures"];
  if (!values.is_array() || std::ssize(values) != block_size) {
    return Wrong("temperatures", values, "an array of " + std::to_string(block_size));
  }
  std::vector<double> temperatures;
  for (const json& value : values) {
    if (!value.is_number()) return Wrong("temperatures", value, "a number");
    temperatures.push_back(value.get<double>());
  }
  return TemperatureTable::Create(std::move(temperatures));
}

}  // namespace deepinfer::spec
