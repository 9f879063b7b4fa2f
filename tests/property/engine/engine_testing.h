// Engines on models/nano, random requests, and what to compare of their results.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace deepinfer::testing {

using Random = std::mt19937_64;

// models/nano, loaded once a program.
const std::shared_ptr<const Runtime>& NanoRuntime();

// Integers from `low` to `high`, both included.
int64_t Between(Random& random, int64_t low, int64_t high);
inline bool Chance(Random& random, double share) {
  return std::uniform_real_distribution<>(0, 1)(random) < share;
}

// One request at a time, one thread, no prefix cache, no asynchronous scheduling.
EngineSettings Alone(PrefillMode mode);
// Anything that must not matter: budgets, block sizes, cache sizes that force preemptions, threads,
// asynchronous scheduling, and the prefix cache of the given mode.
EngineSettings RandomSettings(Random& random, PrefillMode mode, cache::PrefixMode prefix);

// Prompts share beginnings; parameters use every part of sampling and stopping.
std::vector<EngineRequest> RandomRequests(Random& random, int count, PrefillMode mode);

std::unique_ptr<Engine> MakeEngine(const EngineSettings& settings);

// Everything of an output that must be the same wherever it ran.
std::string Bytes(const RequestOutput& output);
// Of the request in an engine with nothing else; each request after the one before has ended.
std::vector<std::string> RunAlone(Engine& engine, const std::vector<EngineRequest>& requests);

}  // namespace deepinfer::testing
