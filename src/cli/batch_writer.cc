#include "cli/batch_writer.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace deepinfer::cli {
namespace {

// Requests that wait for their turn to be written, the running ones among them.
constexpr size_t kMostPending = 1024;

}  // namespace

BatchWriter::BatchWriter(Session& session, Output& output)
    : session_(session),
      output_(output),
      shows_status_(IsTerminal(STDERR_FILENO) && !IsTerminal(STDOUT_FILENO)),
      thread_([this] { Main(); }) {}

BatchWriter::~BatchWriter() { (void)Finish(); }

bool BatchWriter::Ready() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !status_ || entries_.size() < kMostPending; });
  return status_.has_value();
}

void BatchWriter::Add(std::string id_json, int64_t number, Result<PendingResponse> response) {
  ++requests_;
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({std::move(id_json), number, std::move(response)});
  }
  changed_.notify_all();
}

Status BatchWriter::Finish() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  return status_;
}

void BatchWriter::Main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || !entries_.empty(); });
    if (entries_.empty()) break;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    changed_.notify_all();
    const Status status = Write(entry);
    ++written_;
    if (shows_status_) ShowStatus();
    lock.lock();
    if (status) continue;
    status_ = status;
    break;
  }
  lock.unlock();
  changed_.notify_all();
  if (shows_status_) std::fputs("\r\x1b[K", stderr);
}

Status BatchWriter::Write(Entry& entry) {
  CompletionHooks hooks;
  if (shows_status_) {
    hooks.on_event = [this](const OutputEvent&) {
      ShowStatus();
      return true;
    };
  }
  Result<Completion> completion = entry.response
                                      ? entry.response->completion.Wait(hooks)
                                      : Result<Completion>(tl::unexpected(entry.response.error()));
  std::string line;
  if (completion) {
    session_.Count(*completion);
    line = ResponseJson(entry.response->request, *completion);
  } else {
    ++failed_;
    line = ErrorJson(entry.id_json, entry.number, completion.error());
  }
  DI_RETURN_IF_ERROR(output_.Write(line + "\n"));
  return output_.Flush();
}

void BatchWriter::ShowStatus() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_status_) return;
  next_status_ = now + std::chrono::milliseconds(100);
  const EngineStats stats = session_.engine().stats();
  const double used = stats.kv_blocks > 0
                          ? 100 * static_cast<double>(stats.kv_blocks - stats.kv_blocks_free) /
                                static_cast<double>(stats.kv_blocks)
                          : 0;
  std::fputs(
      fmt::format("\r\x1b[K{} answered, {} running, {} waiting, {} tokens, {:.0f} % of the KV "
                  "cache",
                  written_, stats.running, stats.waiting, stats.generated_tokens, used)
          .c_str(),
      stderr);
}

}  // namespace deepinfer::cli
