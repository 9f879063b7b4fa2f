// Mask and compile times over hundreds of schemas, with a vocabulary of 129,280 tokens. Every
// schema is compiled once; then texts are written that jump at random among what is allowed, with
// strings as long as records have them, and every mask on the way is timed.
#include <cstdio>
#include <memory>
#include <span>

#include "bench/grammar_bench_util.h"
#include "bench/schema_generator.h"
#include "grammar/json_schema/json_schema.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kGenerated = 500;
constexpr uint32_t kWalks = 3;
constexpr int kTokensPerWalk = 150;

constexpr std::string_view kHandMade[] = {
    R"({"type":"object"})",
    "true",
    R"({"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]}})",
    R"({"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"explanation":{"type":"string"},"output":{"type":"string"}},"required":["explanation","output"],"additionalProperties":false}},"final_answer":{"type":"string"}},"required":["steps","final_answer"],"additionalProperties":false})",
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}})",
    R"({"type":"object","properties":{"location":{"type":"string","description":"City and country"},"unit":{"enum":["celsius","fahrenheit"]}},"required":["location"]})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]}})",
    R"({"type":"string","maxLength":2000})",
    R"({"type":"array","items":{"enum":["red","green","blue"]},"uniqueItems":true,"minItems":1})",
    R"({"type":"object","properties":{"host":{"type":"string","format":"hostname"},"ip":{"type":"string","format":"ipv6"},"port":{"type":"integer","minimum":1,"maximum":65535}},"required":["host","port"]})",
};

struct Times {
  std::vector<double> compile, fresh, again, bytes, mask_bytes;
  struct Slow {
    double time;
    std::string schema;
    std::string text;
  };
  std::vector<Slow> slow;
  size_t refused = 0;
};

// An allowed token: most often any, else one of only punctuation and blanks, which ends strings.
int32_t Pick(const Vocabulary& vocabulary, std::span<const uint32_t> mask,
             const std::vector<int32_t>& punctuation, std::mt19937& random) {
  if (random() % 3 == 0) {
    const size_t start = random() % punctuation.size();
    for (size_t i = 0; i < punctuation.size(); ++i) {
      const int32_t token = punctuation[(start + i) % punctuation.size()];
      if ((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) return token;
    }
  }
  const size_t size = static_cast<size_t>(vocabulary.size());
  const size_t start = random() % size;
  for (size_t i = 0; i < size; ++i) {
    const size_t token = (start + i) % size;
    if (token % 32 == 0 && mask[token / 32] == 0) {
      i += 31;
      continue;
    }
    if ((mask[token / 32] >> (token % 32)) & 1) return static_cast<int32_t>(token);
  }
  return -1;
}

void Walk(const std::shared_ptr<const CompiledGrammar>& grammar, const std::string& schema,
          const std::vector<int32_t>& punctuation, uint32_t seed, std::vector<double>& times,
          std::vector<Times::Slow>& slow) {
  const Vocabulary& vocabulary = grammar->vocabulary();
  Matcher matcher(grammar);
  std::vector<uint32_t> mask(vocabulary.mask_words());
  std::mt19937 random(seed);
  std::string text;
  for (int step = 0; step < kTokensPerWalk && !matcher.has_ended(); ++step) {
    const auto start = Clock::now();
    const bool filled = matcher.FillMask(mask).has_value();
    const double time = Microseconds(Clock::now() - start);
    times.push_back(time);
    if (time > 400) slow.push_back({time, schema, text});
    if (!filled) return;
    const int32_t token = Pick(vocabulary, mask, punctuation, random);
    if (token < 0 || !matcher.Advance(token)) return;
    text += vocabulary.token_bytes(token);
  }
}

void Measure(const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& schema,
             const std::vector<int32_t>& punctuation, Times& times) {
  const auto start = Clock::now();
  Budget budget{Limits()};
  Result<GrammarIr> ir = JsonSchemaToIr(schema, {}, budget);
  Result<std::shared_ptr<const CompiledGrammar>> grammar = nullptr;
  if (ir) grammar = CompiledGrammar::Create(std::move(*ir), vocabulary, budget);
  const double compile = Microseconds(Clock::now() - start);
  if (!ir || !grammar) {
    ++times.refused;
    std::printf("refused: %s\n", (ir ? grammar.error() : ir.error()).message.c_str());
    return;
  }
  times.compile.push_back(compile);
  times.bytes.push_back(static_cast<double>((*grammar)->stats().program_bytes) / 1024);
  std::vector<Times::Slow> ignored;
  for (uint32_t seed = 0; seed < kWalks; ++seed) {
    Walk(*grammar, schema, punctuation, seed, times.fresh, times.slow);
  }
  for (uint32_t seed = 0; seed < kWalks; ++seed) {
    Walk(*grammar, schema, punctuation, seed, times.again, ignored);
  }
  times.mask_bytes.push_back(static_cast<double>((*grammar)->stats().mask_bytes) / 1024);
}

void Print(const char* what, std::vector<double>& values) {
  std::printf("%-28s %8zu %10.1f %10.1f %10.1f %10.1f\n", what, values.size(),
              Percentile(values, 0.5), Percentile(values, 0.99), Percentile(values, 0.999),
              Percentile(values, 1.0));
}

int Run(bool verbose) {
  const auto tokenizer = Tokenizer::FromFile(TokenizerPath());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const auto vocabulary = *Vocabulary::Create(TokenBytes(*tokenizer), {0});
  std::vector<int32_t> punctuation;
  for (int32_t token = 0; token < vocabulary->size(); ++token) {
    const std::string_view bytes = vocabulary->token_bytes(token);
    if (!bytes.empty() && bytes.find_first_not_of("{}[]\":, \n") == std::string_view::npos) {
      punctuation.push_back(token);
    }
  }
  Times times;
  for (const std::string_view schema : kHandMade) {
    Measure(vocabulary, std::string(schema), punctuation, times);
  }
  for (uint32_t seed = 0; seed < kGenerated; ++seed) {
    Measure(vocabulary, SchemaGenerator(seed).Draw(), punctuation, times);
  }
  std::printf("%s: %d tokens; %zu schemas, %zu refused\n", TokenizerPath().c_str(),
              vocabulary->size(), times.compile.size(), times.refused);
  std::printf("%-28s %8s %10s %10s %10s %10s\n", "", "number", "p50", "p99", "p99.9", "max");
  Print("compile, us", times.compile);
  Print("masks at first, us", times.fresh);
  Print("masks again, us", times.again);
  std::vector<double> all = times.fresh;
  all.insert(all.end(), times.again.begin(), times.again.end());
  Print("all masks, us", all);
  Print("program, KiB", times.bytes);
  Print("kept masks, KiB", times.mask_bytes);
  if (!verbose) return 0;
  std::sort(times.slow.begin(), times.slow.end(),
            [](const auto& a, const auto& b) { return a.time > b.time; });
  for (size_t i = 0; i < times.slow.size() && i < 40; ++i) {
    std::printf("%.0f us after %s\n  of %s\n", times.slow[i].time, times.slow[i].text.c_str(),
                times.slow[i].schema.substr(0, 600).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace deepinfer::grammar

int main(int argc, char** argv) {
  return deepinfer::grammar::Run(argc > 1 && std::string_view(argv[1]) == "--slow");
}
