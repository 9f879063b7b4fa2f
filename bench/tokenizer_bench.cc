// Tokenizer throughput on one core. The 128,000-token vocabulary is measured where
// tools/fetch_v3_tokenizer.sh or DEEPINFER_V3_TOKENIZER provides it.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "base/file.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

constexpr size_t kTextBytes = size_t{4} << 20;

std::filesystem::path NanoDir() {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / "models/nano";
}

std::filesystem::path V3Path() {
  const char* path = std::getenv("DEEPINFER_V3_TOKENIZER");
  return path != nullptr ? std::filesystem::path(path)
                         : std::filesystem::path(DEEPINFER_SOURCE_DIR) /
                               "build/cache/deepseek_v3_tokenizer.json";
}

// Held-out English prose, repeated.
std::string Prose() {
  const std::string prose = ReadFile(NanoDir() / "eval/prose_heldout.txt").value_or("");
  std::string text;
  while (!prose.empty() && text.size() < kTextBytes) text += prose;
  return text;
}

// Random lower-case words of 1 to 12 letters: hardly any occurs twice.
std::string RandomWords() {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < kTextBytes) {
    const size_t letters = 1 + random() % 12;
    for (size_t i = 0; i < letters; ++i) text += static_cast<char>('a' + random() % 26);
    text += ' ';
  }
  return text;
}

std::string OneLongWord() { return std::string(size_t{1} << 20, 'a'); }

std::string OneChineseRun() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < (size_t{1} << 20)) {
    const uint32_t c = 0x4e00 + random() % 0x3000;
    text += static_cast<char>(0xe0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (c & 0x3f));
  }
  return text;
}

void BenchEncode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  size_t tokens = 0;
  for (auto _ : state) tokens = tokenizer.Encode(text, SpecialTokens::kParse).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["bytes/token"] = static_cast<double>(text.size()) / static_cast<double>(tokens);
}

void BenchDetokenize(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text, SpecialTokens::kParse);
  for (auto _ : state) {
    Detokenizer detokenizer(tokenizer);
    for (const int32_t id : ids) benchmark::DoNotOptimize(detokenizer.Push(id));
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void BenchLoad(benchmark::State& state, const std::filesystem::path& path) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::FromFile(path));
}

void BenchEngramTokenMap(benchmark::State& state, const Tokenizer& tokenizer) {
  // The count is of no interest here, so the mismatch error at the very end is accepted.
  for (auto _ : state) {
    benchmark::DoNotOptimize(BuildEngramTokenMap(tokenizer, tokenizer.vocab_size(), 0));
  }
}

void RegisterFor(const std::string& name, const std::filesystem::path& path) {
  const auto tokenizer = Tokenizer::FromFile(path);
  if (!tokenizer) {
    std::fprintf(stderr, "%s skipped: %s\n", name.c_str(), tokenizer.error().message.c_str());
    return;
  }
  const auto add = [&](const char* what, auto fn) {
    benchmark::RegisterBenchmark((name + "/" + what).c_str(), fn)->Unit(benchmark::kMillisecond);
  };
  const auto add_encode = [&](const char* what, const std::string& text) {
    add(what, [=](benchmark::State& state) { BenchEncode(state, *tokenizer, text); });
  };
  add_encode("encode_prose", Prose());
  add_encode("encode_random_words", RandomWords());
  add_encode("encode_one_long_word", OneLongWord());
  add_encode("encode_one_chinese_run", OneChineseRun());
  add("detokenize_prose", [tokenizer, text = Prose()](benchmark::State& state) {
    BenchDetokenize(state, *tokenizer, text);
  });
  add("load", [path](benchmark::State& state) { BenchLoad(state, path); });
  add("engram_token_map",
      [tokenizer](benchmark::State& state) { BenchEngramTokenMap(state, *tokenizer); });
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  deepinfer::RegisterFor("nano", deepinfer::NanoDir() / "tokenizer.json");
  deepinfer::RegisterFor("deepseek_v3", deepinfer::V3Path());
  benchmark::RunSpecifiedBenchmarks();
}
