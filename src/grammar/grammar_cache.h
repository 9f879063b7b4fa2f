// Compiled grammars that several requests share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "grammar/compiled_grammar.h"

namespace deepinfer::grammar {

struct GrammarKey {
  std::string kind;     // "regex", "gbnf", "lark", ...
  std::string options;  // whatever else the front end was told, in one canonical form
  std::string text;

  friend bool operator==(const GrammarKey&, const GrammarKey&) = default;
};

// Keeps the most recently used grammars of one vocabulary, at most `max_bytes` of them by what they
// use at the time of an insertion (their masks grow as they are used; Limits::max_mask_bytes
// bounds that). Grammars in use live on when they are dropped here. Thread-safe; compiling takes
// place outside the lock, so that two threads may compile the same grammar at once.
class GrammarCache {
 public:
  GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits,
               size_t max_bytes);

  using MakeIr = std::function<Result<GrammarIr>(Budget&)>;
  // The grammar of the key; `make_ir` reads the key's text when it is not kept. Errors are those of
  // make_ir and CompiledGrammar::Create; they are not kept.
  Result<std::shared_ptr<const CompiledGrammar>> Get(const GrammarKey& key, const MakeIr& make_ir);

  struct Stats {
    size_t grammars;
    size_t bytes;
    uint64_t hits;
    uint64_t misses;
  };
  Stats stats() const;

 private:
  struct Entry {
    GrammarKey key;
    std::shared_ptr<const CompiledGrammar> grammar;
    size_t bytes() const;
  };
  struct KeyHash {
    size_t operator()(const GrammarKey& key) const;
  };
  using Entries = std::list<Entry>;

  size_t TotalBytes() const;

  const std::shared_ptr<const Vocabulary> vocabulary_;
  const Limits limits_;
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // the most recently used first; guarded by mutex_, like all below
  std::unordered_map<GrammarKey, Entries::iterator, KeyHash> by_key_;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace deepinfer::grammar
