// Mask and compile times of grammars with a vocabulary of 129,280 tokens: the DeepSeek-V3 tokenizer
// where tools/fetch_v3_tokenizer.sh or DEEPINFER_V3_TOKENIZER provides it, else the nano tokenizer
// with synthetic words. Prints a table; every mask is filled while a seeded random walk writes a
// text of the grammar, first with no mask cached, then once more.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/grammar_bench_util.h"
#include "grammar/gbnf.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

constexpr int kTokensPerWalk = 400;
constexpr int kCompiles = 20;

struct Sample {
  std::vector<double> cold, warm, compile;
  GrammarStats stats{};
};

// One text: a random allowed token each time, longer ones preferred as a model would.
void Walk(const std::shared_ptr<const CompiledGrammar>& grammar, uint32_t seed,
          std::vector<double>& times) {
  const Vocabulary& vocabulary = grammar->vocabulary();
  Matcher matcher(grammar);
  std::vector<uint32_t> mask(vocabulary.mask_words());
  std::mt19937 random(seed);
  for (int step = 0; step < kTokensPerWalk && !matcher.has_ended(); ++step) {
    const auto start = Clock::now();
    const bool filled = matcher.FillMask(mask).has_value();
    times.push_back(Microseconds(Clock::now() - start));
    if (!filled) return;
    int32_t best = -1;
    for (int attempt = 0; attempt < 3'000'000; ++attempt) {
      const int32_t token = static_cast<int32_t>(random() % kVocabularySize);
      if (!((mask[static_cast<size_t>(token) / 32] >> (token % 32)) & 1)) continue;
      best = token;
      break;
    }
    if (best < 0 || !matcher.Advance(best)) return;
  }
}

template <typename MakeIr>
Sample Measure(const std::shared_ptr<const Vocabulary>& vocabulary, const MakeIr& make_ir) {
  Sample sample;
  std::shared_ptr<const CompiledGrammar> grammar;
  for (int i = 0; i < kCompiles; ++i) {
    const auto start = Clock::now();
    Budget budget{Limits()};
    Result<GrammarIr> ir = make_ir(budget);
    if (!ir) {
      std::fprintf(stderr, "%s\n", ir.error().message.c_str());
      std::exit(1);
    }
    auto compiled = CompiledGrammar::Create(std::move(*ir), vocabulary, budget);
    sample.compile.push_back(Microseconds(Clock::now() - start));
    if (!compiled) {
      std::fprintf(stderr, "%s\n", compiled.error().message.c_str());
      std::exit(1);
    }
    grammar = *compiled;
  }
  for (uint32_t seed = 0; seed < 5; ++seed) Walk(grammar, seed, sample.cold);
  for (uint32_t seed = 0; seed < 5; ++seed) Walk(grammar, seed, sample.warm);
  sample.stats = grammar->stats();
  return sample;
}

void Print(const char* name, Sample sample) {
  std::printf(
      "%-16s %8.0f %8.0f | %6zu | %7.1f %7.1f %7.1f %8.1f | %7.1f %7.1f %8.1f | %8zu %8zu\n", name,
      Percentile(sample.compile, 0.5), Percentile(sample.compile, 0.99), sample.cold.size(),
      Percentile(sample.cold, 0.5), Percentile(sample.cold, 0.99), Percentile(sample.cold, 0.999),
      Percentile(sample.cold, 1.0), Percentile(sample.warm, 0.5), Percentile(sample.warm, 0.99),
      Percentile(sample.warm, 1.0), sample.stats.program_bytes / 1024,
      sample.stats.mask_bytes / 1024);
}

constexpr std::string_view kJson = R"gbnf(root ::= value
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws ::= [ \t\n]{0,4}
)gbnf";

constexpr std::string_view kRecord =
    R"gbnf(root ::= "{\"name\": " name ", \"age\": " age ", \"tags\": [" (tag (", " tag){0,20})? "], \"kind\": " kind "}"
name ::= "\"" char{1,60} "\""
tag ::= "\"" char{0,2000} "\""
char ::= [^"\\\x00-\x1F] | "\\" ["\\bfnrt/]
age ::= [0-9] | [1-9] [0-9]{1,2}
kind ::= "\"small\"" | "\"medium\"" | "\"large\"" | "null"
)gbnf";

constexpr std::string_view kExpression = R"gbnf(root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] ws term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*
)gbnf";

int Run() {
  const auto tokenizer = Tokenizer::FromFile(TokenizerPath());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const auto start = Clock::now();
  const auto vocabulary = *Vocabulary::Create(TokenBytes(*tokenizer), {0});
  std::printf("%s: %d tokens, trie of %zu nodes, %zu not plain, %zu KiB, built in %.0f ms\n",
              TokenizerPath().c_str(), vocabulary->size(), vocabulary->trie().num_nodes(),
              vocabulary->slices()[0].rest().num_nodes(), vocabulary->bytes_used() / 1024,
              Microseconds(Clock::now() - start) / 1000);
  std::printf("%-16s %8s %8s | %6s | %7s %7s %7s %8s | %7s %7s %8s | %8s %8s\n", "microseconds",
              "comp p50", "p99", "masks", "new p50", "p99", "p99.9", "max", "again", "p99", "max",
              "prog KiB", "mask KiB");
  const auto gbnf = [&](std::string_view text) {
    return Measure(vocabulary, [text](Budget& budget) { return GbnfToIr(text, budget); });
  };
  const auto regex = [&](std::string_view text) {
    return Measure(vocabulary, [text](Budget& budget) { return RegexToIr(text, {}, budget); });
  };
  Print("json", gbnf(kJson));
  Print("record", gbnf(kRecord));
  Print("expression", gbnf(kExpression));
  Print("any text", regex("[^]*"));
  Print("short lines", regex("(.{0,80}\\n)*"));
  Print("identifier", regex("[a-z][a-z0-9_]{0,30}"));
  Print("letters", regex("(\\p{Lu}\\p{Ll}+ )+\\p{N}+"));
  Print("e-mail",
        regex("[A-Za-z0-9.!#$%&'*+=?^_`{|}~-]+@[a-z0-9-]{1,63}(\\.[a-z0-9-]{1,63}){1,4}"));
  Print("date-time", regex("\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]"
                           "\\d:[0-5]\\d(\\.\\d+)?(Z|[+-][01]\\d:[0-5]\\d)"));
  return 0;
}

}  // namespace
}  // namespace deepinfer::grammar

int main() { return deepinfer::grammar::Run(); }
