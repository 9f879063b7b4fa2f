// Random arrivals, cancels and limits on tiny caches for a while: no error, pools balanced, memory
// flat. engine_soak SECONDS [SEED]; longer runs, under sanitizers too, by hand.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/resident_memory.h"
#include "tests/property/engine/engine_testing.h"
#include "tests/support/balance.h"

namespace deepinfer::testing {
namespace {

using Clock = std::chrono::steady_clock;
using cache::PrefixMode;

// One engine, hammered by three threads. Returns what went wrong; empty: nothing.
std::string Hammer(uint64_t seed, double seconds) {
  Random random(seed);
  const PrefillMode mode = Chance(random, 0.5) ? PrefillMode::kOff : PrefillMode::kCompact;
  const auto prefix =
      std::array{PrefixMode::kOff, PrefixMode::kFast,
                 PrefixMode::kDeterministic}[static_cast<size_t>(Between(random, 0, 2))];
  const auto engine = MakeEngine(RandomSettings(random, mode, prefix));
  std::vector<EngineRequest> requests = RandomRequests(random, 60, mode);
  std::erase_if(requests, [&](const EngineRequest& request) {
    return std::ssize(request.prompt) >= engine->max_model_len();
  });
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<std::string> problems(3);
  std::vector<std::thread> clients;
  for (size_t client = 0; client < problems.size(); ++client) {
    clients.emplace_back([&, client] {
      Random own(seed * 31 + client);
      std::vector<std::shared_ptr<RequestStream>> streams;
      while (Clock::now() < end) {
        EngineRequest request =
            requests[static_cast<size_t>(Between(own, 0, std::ssize(requests) - 1))];
        request.options.priority = static_cast<int32_t>(Between(own, -3, 3));
        if (Chance(own, 0.1)) {
          request.options.deadline = Clock::now() + std::chrono::milliseconds(Between(own, 0, 30));
        }
        if (Chance(own, 0.3)) request.options.on_output = [](const OutputDelta&) {};
        auto stream = engine->Submit(std::move(request));
        if (!stream) {
          problems[client] = stream.error().message;
          return;
        }
        streams.push_back(*stream);
        if (Chance(own, 0.3)) {
          streams[static_cast<size_t>(Between(own, 0, std::ssize(streams) - 1))]->Cancel();
        }
        if (streams.size() > 12) {
          const RequestOutput output = streams.front()->Wait();
          for (const CompletionOutput& choice : output.outputs) {
            if (!choice.error.empty()) problems[client] = choice.error;
          }
          streams.erase(streams.begin());
        }
      }
      for (const auto& stream : streams) stream->Wait();
    });
  }
  for (std::thread& client : clients) client.join();
  for (const std::string& problem : problems) {
    if (!problem.empty()) return problem;
  }
  const Status balance = WaitForBalance(*engine);
  return balance ? "" : balance.error().message;
}

int Main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t settled = 0;
  int engines = 0;
  for (; Clock::now() < end; ++seed, ++engines) {
    if (const std::string problem = Hammer(seed, 0.5); !problem.empty()) {
      fmt::print(stderr, "seed {}: {}\n", seed, problem);
      return 1;
    }
    const auto memory = ReadResidentMemory();
    if (!memory) continue;
    // The first engines load pages and grow the allocator's arenas.
    if (engines < 20) settled = std::max(settled, memory->anonymous);
    if (memory->anonymous > settled + settled / 2 + (32 << 20)) {
      fmt::print(stderr, "seed {}: {} bytes are resident, {} were after the first engines\n", seed,
                 memory->anonymous, settled);
      return 1;
    }
  }
  fmt::print("{} engines, {} bytes resident after the first ones\n", engines, settled);
  return 0;
}

}  // namespace
}  // namespace deepinfer::testing

int main(int argc, char** argv) { return deepinfer::testing::Main(argc, argv); }
