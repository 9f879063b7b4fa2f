// The configurations that the tests start from.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "config/model_config.h"

namespace deepinfer {

inline std::filesystem::path SourcePath(std::string_view relative) {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / relative;
}

inline nlohmann::json ReleaseJson() {
  auto text = ReadFile(SourcePath("tests/golden/data/release-config.json"));
  EXPECT_TRUE(text);
  return nlohmann::json::parse(text.value());
}

inline nlohmann::json NanoJson() {
  auto text = ReadFile(SourcePath("models/nano/config.json"));
  EXPECT_TRUE(text);
  return nlohmann::json::parse(text.value());
}

inline Result<ModelConfig> Parse(const nlohmann::json& document) {
  return ParseModelConfig(document.dump());
}

}  // namespace deepinfer
