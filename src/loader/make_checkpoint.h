// Makes a checkpoint in the release's format with random weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/progress.h"
#include "base/result.h"

namespace deepinfer {

struct MakeCheckpointOptions {
  // Created. It may exist only as an empty folder; its parent must exist.
  std::filesystem::path folder;
  // config.json text (DesignConfig).
  std::string config_json;
  // tokenizer.json text with vocab_size ids (PadTokenizer), and the number of distinct compressed
  // ids of its Engram token map (tokenizer/engram_token_map.h), which the loader cannot compute.
  std::string tokenizer_json;
  int64_t engram_compressed_vocab_size = 0;
  uint64_t seed = 0;
  // Files end before they exceed this many tensor bytes. [2^20, 2^46].
  uint64_t shard_bytes = uint64_t{4} << 30;
  int threads = 1;  // [1, 1024]
  // Polled; true ends the work with kCancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Writes config.json (fitted to the tokenizer), tokenizer.json, tokenizer_config.json,
// generation_config.json and the weights. The same options give the same bytes at any number of
// threads. Needs some 20 MiB of memory whatever the size. The files are written into a folder
// "NAME.incomplete-XXXXXX" beside the target, which is then renamed: the target appears whole or
// not at all, and after an error nothing is left. Progress counts tensor bytes.
// Errors: kInvalidArgument (options, target in use), kResourceExhausted (disk full, or too few
// bytes free before anything is written), kIo, kCancelled.
Status MakeCheckpoint(const MakeCheckpointOptions& options, const ProgressFn& progress);

}  // namespace deepinfer
