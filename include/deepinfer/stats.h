// What an engine has done so far and does now.
#pragma once

#include <cstdint>
#include <vector>

namespace deepinfer {

// Where the time of steps went, in seconds, summed. The engine thread plans, and applies results,
// while the device computes.
struct StepTimes {
  double plan = 0;     // choosing rows
  double forward = 0;  // the model
  double draft = 0;    // the draft module, its draws included
  double sample = 0;   // drawing tokens
  double mask = 0;     // the device waited for grammar masks
  double host = 0;     // applying results: text, stop conditions, masks
  double idle = 0;     // the device waited between steps although requests were running
};

// What drafting gives. A round is one sequence's share of a step that verified drafts.
struct SpeculationCounts {
  int64_t rounds = 0;
  int64_t drafted_tokens = 0;   // all of them were verified
  int64_t accepted_tokens = 0;  // of them
  // Of draft k (from 0): rounds in which all before it were accepted, and in which it was too.
  std::vector<int64_t> reached_at, accepted_at;

  // Tokens that a round gives, the one included that the model draws anyway. 1 without rounds.
  double MeanAcceptedLength() const {
    return rounds == 0 ? 1 : 1 + static_cast<double>(accepted_tokens) / static_cast<double>(rounds);
  }
};

struct EngineStats {
  int64_t waiting = 0;  // requests in the queue, or whose grammar is being compiled
  int64_t running = 0;
  int64_t finished = 0;
  int64_t failed = 0;
  int64_t steps = 0;
  int64_t discarded_rows = 0;  // computed after a stop that could not be foreseen
  int64_t preemptions = 0;
  int64_t prompt_tokens = 0;           // of admitted requests
  int64_t computed_prompt_tokens = 0;  // rows of prompts, recomputed ones counted again
  int64_t generated_tokens = 0;
  int64_t prefix_query_tokens = 0;  // prompt tokens that were looked up in the prefix cache
  int64_t prefix_hit_tokens = 0;    // of them, found
  int64_t kv_blocks = 0;
  int64_t kv_blocks_free = 0;
  int64_t kv_blocks_cached = 0;  // idle, but kept for a prompt that begins alike
  int64_t kv_blocks_peak = 0;    // most that were not free
  StepTimes times;
  SpeculationCounts speculation;
};

}  // namespace deepinfer
