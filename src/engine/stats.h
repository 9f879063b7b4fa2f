// Speed and memory of one generation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deepinfer/stats.h"

namespace deepinfer {

struct GenerationStats {
  double load_seconds = 0;  // checkpoint and tokenizer, once a process
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t decoded_tokens = 0;  // generated tokens after each first one, which the prefill paid for
  double prefill_seconds = 0;  // prompt to logits of the first token
  double decode_seconds = 0;   // first token to last
  double time_to_first_token_seconds = 0;  // includes the draw

  double prompt_tokens_per_second() const;
  // Of decoded_tokens.
  double generation_tokens_per_second() const;
};

struct MemoryLine {
  std::string name;
  uint64_t bytes = 0;
};

// Largest resident set of this process so far, in bytes.
uint64_t PeakResidentBytes();

// A table of lines for people: speed, then memory.
std::string FormatStats(const GenerationStats& stats, const std::vector<MemoryLine>& memory);

// Where the time of an engine's steps went, and what its cache served: lines for people.
std::string FormatSteps(const EngineStats& stats);

}  // namespace deepinfer
