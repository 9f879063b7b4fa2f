#include "cli/interrupt.h"

namespace deepinfer::cli {
namespace {
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the flag is set by a signal handler");
}  // namespace

std::atomic<bool>& Interrupt() { return interrupted; }

void CatchInterrupt(std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted.store(true); };
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a blocking read returns
  for (int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace deepinfer::cli
