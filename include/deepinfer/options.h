// What an engine is made with.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace deepinfer {

// The options of docs/options.md by name ("max-num-seqs"), as text; all have defaults. A value.
class EngineOptions {
 public:
  // The defaults alone.
  EngineOptions();
  // The defaults, changed by the config file and the DEEPINFER_ variables of the environment.
  // Throws Exception.
  static EngineOptions FromEnvironment();
  EngineOptions(const EngineOptions&);
  EngineOptions& operator=(const EngineOptions&);
  EngineOptions(EngineOptions&&) noexcept;
  EngineOptions& operator=(EngineOptions&&) noexcept;
  ~EngineOptions();

  // Throws Exception for an unknown name, or a value that the option does not allow, naming what it
  // does.
  EngineOptions& Set(std::string_view name, std::string_view value);
  EngineOptions& Set(std::string_view name, const char* value) {
    return Set(name, std::string_view(value));
  }
  template <std::integral T>
  EngineOptions& Set(std::string_view name, T value) {
    return Set(name, std::string_view(std::to_string(value)));
  }
  // Throws Exception for an unknown name.
  std::string Get(std::string_view name) const;

 private:
  friend class LLM;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace deepinfer
