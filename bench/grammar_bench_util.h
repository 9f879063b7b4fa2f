// What the benchmarks of grammars share: the vocabulary and percentiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace deepinfer::grammar {

using Clock = std::chrono::steady_clock;

inline constexpr int32_t kVocabularySize = 129'280;

inline double Microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

inline std::filesystem::path TokenizerPath() {
  const std::filesystem::path root = DEEPINFER_SOURCE_DIR;
  const char* given = std::getenv("DEEPINFER_V3_TOKENIZER");
  const std::filesystem::path v3 =
      given != nullptr ? given : root / "build/cache/deepseek_v3_tokenizer.json";
  return std::filesystem::exists(v3) ? v3 : root / "models/nano/tokenizer.json";
}

// The tokenizer's tokens, then made-up words up to the full size.
inline std::vector<std::string> TokenBytes(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    tokens.emplace_back(tokenizer.IsAdded(id) ? std::string_view() : tokenizer.TokenBytes(id));
  }
  std::mt19937 random(1);
  const bool synthetic = tokenizer.vocab_size() < kVocabularySize / 2;
  while (tokens.size() < kVocabularySize) {
    std::string word = synthetic && random() % 2 == 0 ? " " : "";
    const size_t letters = 2 + random() % 8;
    for (size_t i = 0; i < letters; ++i) word += static_cast<char>('a' + random() % 26);
    tokens.push_back(synthetic ? word : "");
  }
  tokens[0].clear();
  return tokens;
}

inline double Percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t index = static_cast<size_t>(share * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

}  // namespace deepinfer::grammar
