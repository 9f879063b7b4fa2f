// Downloads a whole repository of a Hugging Face hub into the local cache.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "loader/hub_cache.h"

namespace deepinfer {

struct DownloadOptions {
  std::string repository{kDefaultRepository};  // "org/name"
  std::string revision = "main";               // branch, tag or commit
  std::filesystem::path cache_folder;          // the hub folder
  std::string endpoint = "https://huggingface.co";
  // Sent to the endpoint's own scheme, host and port only. Empty: anonymous.
  std::string token;
  // Consecutive failures without a new byte before a transient error is final (1..100).
  int max_attempts = 6;
  // Wait after the first failure; doubles with each further one, up to a minute.
  std::chrono::milliseconds first_backoff{1000};
  // A transfer that moves no byte for this long counts as failed.
  std::chrono::seconds stall_timeout{60};
  // Polled; true ends the download with kCancelled, resumable. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Options with cache folder, endpoint (HF_ENDPOINT) and token (HF_TOKEN) taken from the
// environment.
Result<DownloadOptions> DownloadOptionsFromEnvironment(const EnvironmentFn& environment);

// Returns the snapshot folder. What is already in the cache is not fetched again; an interrupted
// download, killed at any instant, continues where it stopped. Each file is checked against the
// hub's digest before it gets its name, and the revision's reference is written last. Several
// processes may download the same repository; each blob is written by one of them.
// Progress counts bytes of the whole repository.
// Errors name URL, status, expected and actual values: kInvalidArgument (options, no access),
// kNotFound, kDataLoss (listing, size, checksum), kResourceExhausted (disk full), kIo, kCancelled.
Result<std::filesystem::path> DownloadRepository(const DownloadOptions& options,
                                                 const ProgressFn& progress);

}  // namespace deepinfer
