// Waits for the steps that an engine still has in flight when its last request has ended.
#pragma once

#include <chrono>
#include <thread>

#include "engine/engine.h"

namespace deepinfer::testing {

// Engine::CheckBalance once it holds, or its error after two seconds.
inline Status WaitForBalance(const Engine& engine) {
  Status balance;
  for (int i = 0; i < 200 && !(balance = engine.CheckBalance()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return balance;
}

}  // namespace deepinfer::testing
