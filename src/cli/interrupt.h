// Ctrl-C and the like as a flag.
#pragma once

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace deepinfer::cli {

// Set by a signal once CatchInterrupt was called for it; whoever acts on it clears it.
std::atomic<bool>& Interrupt();

// From now on these signals set the flag and interrupt blocking reads instead of ending the
// program.
void CatchInterrupt(std::initializer_list<int> signals = {SIGINT});

}  // namespace deepinfer::cli
