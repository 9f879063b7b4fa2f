// Compiles grammars beside the engine's loop.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/result.h"
#include "engine/structured_output.h"
#include "grammar/compiled_grammar.h"
#include "grammar/grammar_cache.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

using GrammarResult = Result<std::shared_ptr<const grammar::CompiledGrammar>>;

// One thread, which starts with the first grammar, as does the vocabulary. Thread-safe.
class GrammarCompiler {
 public:
  // Masks cover the `vocab_size` ids of the model; `eos_token` is allowed where a text may end.
  GrammarCompiler(Tokenizer tokenizer, int64_t vocab_size, int32_t eos_token, int64_t cache_bytes);
  // What is not begun is not compiled, and nobody is told.
  ~GrammarCompiler();

  // `done` is called once, on the compiler's thread. Errors: the system refuses the thread.
  Status Compile(GrammarSource source, std::function<void(GrammarResult)> done);

  // Of the cache; zeros before the first grammar.
  grammar::GrammarCache::Stats stats() const;

 private:
  struct Job {
    GrammarSource source;
    std::function<void(GrammarResult)> done;
  };
  void Main();
  // Made on first use.
  Result<grammar::GrammarCache*> Cache();

  const Tokenizer tokenizer_;
  const int64_t vocab_size_;
  const int32_t eos_token_;
  const int64_t cache_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_, like all below
  std::unique_ptr<grammar::GrammarCache> cache_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace deepinfer
