// Waiting without the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace deepinfer::python {

// How long a wait may keep a signal (Ctrl-C) from being seen.
inline constexpr std::chrono::milliseconds kSignalInterval{50};

// Releases the GIL while it lives. Counted, so that the interpreter's end can wait until all such
// threads hold the GIL again: later it would end them inside of destructors.
class BlockingCall {
 public:
  struct Count {
    Count() { ++number; }
    ~Count() { --number; }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    static inline std::atomic<int> number{0};
  };

  BlockingCall() = default;
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Until no Count lives. Needs the GIL, which other threads get meanwhile.
  static void WaitForAll() {
    const pybind11::gil_scoped_release release;
    while (Count::number.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  Count count_;  // before release_: the GIL is back when it goes
  pybind11::gil_scoped_release release_;
};

// Calls `poll(time)` without the GIL until it returns something, or std::nullopt once `seconds`
// have passed. Between the calls, which are to take `time` at most, signals are handled: what their
// handlers raise is thrown. Needs the GIL.
template <typename Poll>
auto WaitWithSignals(std::optional<double> seconds, const Poll& poll)
    -> decltype(poll(kSignalInterval)) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    auto time = kSignalInterval;
    if (seconds) {
      const double left = *seconds - std::chrono::duration<double>(Clock::now() - start).count();
      if (left < std::chrono::duration<double>(time).count()) {
        time = std::chrono::milliseconds(left > 0 ? static_cast<int>(left * 1e3) + 1 : 0);
      }
    }
    {
      const BlockingCall blocking;
      if (auto result = poll(time)) return result;
    }
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (seconds && Clock::now() - start >= std::chrono::duration<double>(*seconds)) {
      return std::nullopt;
    }
  }
}

}  // namespace deepinfer::python
