// Answers of a batch, written in the order of the requests while later ones still run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "cli/output.h"
#include "cli/session.h"
#include "engine/completion.h"
#include "engine/request.h"

namespace deepinfer::cli {

struct PendingResponse {
  Request request;
  PendingCompletion completion;
};

// Requests come from one thread; a second one waits for the answers, writes each as a line and, on
// a terminal, keeps one line of status on standard error.
class BatchWriter {
 public:
  // Both outlive the writer.
  BatchWriter(Session& session, Output& output);
  // Waits for what was added.
  ~BatchWriter();

  // Waits until there is room for another request. False when writing has failed: nothing more is
  // of use.
  bool Ready();
  // The answer to line `number`, or why there is none.
  void Add(std::string id_json, int64_t number, Result<PendingResponse> response);
  // All answers are written, or the error of writing.
  Status Finish();

  int64_t requests() const { return requests_; }
  // After Finish.
  int64_t failed() const { return failed_; }

 private:
  struct Entry {
    std::string id_json;
    int64_t number = 0;
    Result<PendingResponse> response;
  };
  void Main();
  Status Write(Entry& entry);
  // At most ten times a second.
  void ShowStatus();

  Session& session_;
  Output& output_;
  const bool shows_status_;
  int64_t requests_ = 0;
  int64_t failed_ = 0;  // of the writing thread, as are the next two
  int64_t written_ = 0;
  std::chrono::steady_clock::time_point next_status_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;  // guarded by mutex_, like all below
  Status status_;
  bool ended_ = false;  // nothing is added any more
  std::thread thread_;
};

}  // namespace deepinfer::cli
