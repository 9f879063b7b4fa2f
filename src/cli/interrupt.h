// Ctrl-C as a flag.
#pragma once

#include <atomic>

namespace deepinfer::cli {

// Set by SIGINT once CatchInterrupt was called; whoever acts on it clears it.
std::atomic<bool>& Interrupt();

// From now on SIGINT sets the flag and interrupts blocking reads instead of ending the program.
void CatchInterrupt();

}  // namespace deepinfer::cli
