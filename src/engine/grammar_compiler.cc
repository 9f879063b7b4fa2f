#include "engine/grammar_compiler.h"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace deepinfer {

GrammarCompiler::GrammarCompiler(Tokenizer tokenizer, int64_t vocab_size, int32_t eos_token,
                                 int64_t cache_bytes)
    : tokenizer_(std::move(tokenizer)),
      vocab_size_(vocab_size),
      eos_token_(eos_token),
      cache_bytes_(cache_bytes) {}

GrammarCompiler::~GrammarCompiler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status GrammarCompiler::Compile(GrammarSource source, std::function<void(GrammarResult)> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { Main(); });
      } catch (const std::system_error& e) {
        return MakeError(ErrorCode::kResourceExhausted,
                         "the system refuses a thread for grammars: {}", e.what());
      }
    }
    jobs_.push_back({std::move(source), std::move(done)});
  }
  changed_.notify_one();
  return {};
}

grammar::GrammarCache::Stats GrammarCompiler::stats() const {
  const std::lock_guard lock(mutex_);
  return cache_ ? cache_->stats() : grammar::GrammarCache::Stats{};
}

void GrammarCompiler::Main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const Result<grammar::GrammarCache*> cache = Cache();
    job.done(cache ? (*cache)->Get(job.source.key, job.source.make_ir)
                   : GrammarResult(tl::unexpected(cache.error())));
    lock.lock();
  }
}

Result<grammar::GrammarCache*> GrammarCompiler::Cache() {
  {
    const std::lock_guard lock(mutex_);
    if (cache_) return cache_.get();
  }
  std::vector<std::string> bytes(static_cast<size_t>(vocab_size_));
  for (int32_t id = 0; id < vocab_size_; ++id) {
    // Added tokens are control tokens: no text may spell them.
    if (!tokenizer_.IsAdded(id)) bytes[static_cast<size_t>(id)] = tokenizer_.TokenBytes(id);
  }
  DI_ASSIGN_OR_RETURN(auto vocabulary, grammar::Vocabulary::Create(std::move(bytes), {eos_token_}));
  auto cache = std::make_unique<grammar::GrammarCache>(std::move(vocabulary), grammar::Limits{},
                                                       static_cast<size_t>(cache_bytes_));
  const std::lock_guard lock(mutex_);
  cache_ = std::move(cache);
  return cache_.get();
}

}  // namespace deepinfer
