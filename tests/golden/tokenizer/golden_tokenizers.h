// Where the tokenizers of the golden files are found.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace deepinfer {

inline std::filesystem::path SourceDir() { return DEEPINFER_SOURCE_DIR; }
inline std::filesystem::path NanoDir() { return SourceDir() / "models/nano"; }
// The toys are not part of the tree.
inline std::filesystem::path SharedGoldens() { return SourceDir() / "../shared/goldens"; }

// DEEPINFER_V3_TOKENIZER, or what tools/fetch_v3_tokenizer.sh left in the build folder.
inline std::filesystem::path V3TokenizerPath() {
  const char* path = std::getenv("DEEPINFER_V3_TOKENIZER");
  return path != nullptr ? std::filesystem::path(path)
                         : SourceDir() / "build/cache/deepseek_v3_tokenizer.json";
}

}  // namespace deepinfer

#define SKIP_WITHOUT(path, how)                                   \
  do {                                                            \
    if (!std::filesystem::exists(path)) {                         \
      GTEST_SKIP() << (path).string() << " is absent: " << (how); \
    }                                                             \
  } while (false)
