// Hands a row's grammar mask from the thread that makes it to the one that samples.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace deepinfer::exec {

// One use: Reset, then one of the Open functions on one thread, Wait on another. The words must not
// be changed after that until the next Reset.
class MaskGate {
 public:
  enum class State : int {
    kPending,
    kOpen,    // every token may be drawn
    kMasked,  // words() says which
    kSkip,    // nothing must be drawn: the sequence has ended
  };

  void Reset(size_t words) {
    words_.resize(words);
    state_.store(State::kPending, std::memory_order_relaxed);
  }
  std::span<uint32_t> words() { return words_; }
  std::span<const uint32_t> words() const { return words_; }
  // `state` is not kPending.
  void Open(State state) {
    state_.store(state, std::memory_order_release);
    state_.notify_one();
  }
  State Wait() const {
    state_.wait(State::kPending, std::memory_order_acquire);
    return state_.load(std::memory_order_acquire);
  }
  // Not kPending after Wait.
  State state() const { return state_.load(std::memory_order_acquire); }

 private:
  std::atomic<State> state_{State::kPending};
  std::vector<uint32_t> words_;
};

}  // namespace deepinfer::exec
