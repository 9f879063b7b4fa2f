// The public options: a value over the option table.
#include <exception>
#include <utility>

#include "config/option_parser.h"
#include "config/option_table.h"
#include "deepinfer/options.h"
#include "engine/public_error.h"
#include "engine/public_options.h"

namespace deepinfer {
namespace {

const OptionSpec& SpecOf(std::string_view name) {
  const OptionSpec* spec = FindOption(name);
  if (spec != nullptr) return *spec;
  throw Exception(Exception::Kind::kInvalidArgument,
                  fmt::format("no option {}; docs/options.md lists them", name));
}

}  // namespace

EngineOptions::EngineOptions() : state_(std::make_unique<State>()) {}
EngineOptions::EngineOptions(const EngineOptions& other)
    : state_(std::make_unique<State>(*other.state_)) {}
EngineOptions& EngineOptions::operator=(const EngineOptions& other) {
  *state_ = *other.state_;
  return *this;
}
EngineOptions::EngineOptions(EngineOptions&&) noexcept = default;
EngineOptions& EngineOptions::operator=(EngineOptions&&) noexcept = default;
EngineOptions::~EngineOptions() = default;

EngineOptions EngineOptions::FromEnvironment() {
  EngineOptions options;
  options.state_->values = ValueOrThrow(ResolveOptions({}, ReadEnvironment(), std::nullopt)).values;
  return options;
}

EngineOptions& EngineOptions::Set(std::string_view name, std::string_view value) {
  const OptionSpec& spec = SpecOf(name);
  Status status = spec.set(spec, value, state_->values);
  if (!status) {
    ThrowError(Error{status.error().code, fmt::format("{}: {}", name, status.error().message)});
  }
  return *this;
}

std::string EngineOptions::Get(std::string_view name) const {
  return SpecOf(name).get(state_->values);
}

}  // namespace deepinfer
