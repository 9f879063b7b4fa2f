#include "cli/interrupt.h"

#include <csignal>

namespace deepinfer::cli {
namespace {
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the flag is set by a signal handler");
}  // namespace

std::atomic<bool>& Interrupt() { return interrupted; }

void CatchInterrupt() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted.store(true); };
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a blocking read returns
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace deepinfer::cli
