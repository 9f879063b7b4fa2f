#include "grammar/grammar_cache.h"

#include <utility>

#include "base/random.h"

namespace deepinfer::grammar {

size_t GrammarCache::Entry::bytes() const {
  // The key is kept twice: in the list and in the map.
  return grammar->bytes_used() + 2 * (key.kind.size() + key.options.size() + key.text.size()) +
         sizeof(Entry) + 64;
}

size_t GrammarCache::KeyHash::operator()(const GrammarKey& key) const {
  return RandomKey(RandomKey(RandomKey(0, key.kind), key.options), key.text);
}

GrammarCache::GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits,
                           size_t max_bytes)
    : vocabulary_(std::move(vocabulary)), limits_(limits), max_bytes_(max_bytes) {}

Result<std::shared_ptr<const CompiledGrammar>> GrammarCache::Get(const GrammarKey& key,
                                                                 const MakeIr& make_ir) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      ++hits_;
      entries_.splice(entries_.begin(), entries_, known->second);
      return known->second->grammar;
    }
    ++misses_;
  }
  Budget budget(limits_);
  DI_ASSIGN_OR_RETURN(GrammarIr ir, make_ir(budget));
  DI_ASSIGN_OR_RETURN(auto grammar, CompiledGrammar::Create(std::move(ir), vocabulary_, budget));
  const std::lock_guard lock(mutex_);
  const auto known = by_key_.find(key);
  if (known != by_key_.end()) return known->second->grammar;  // another thread was faster
  entries_.push_front({key, grammar});
  by_key_.emplace(key, entries_.begin());
  while (entries_.size() > 1 && TotalBytes() > max_bytes_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return grammar;
}

size_t GrammarCache::TotalBytes() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes();
  return bytes;
}

GrammarCache::Stats GrammarCache::stats() const {
  const std::lock_guard lock(mutex_);
  return {entries_.size(), TotalBytes(), hits_, misses_};
}

}  // namespace deepinfer::grammar
