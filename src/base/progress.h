// Progress of long work, reported by whoever does it and drawn by whoever owns the terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace deepinfer {

// Called with (what, done, total) now and then, from the thread that does the work, at least once
// with done == total. An empty function means nobody watches.
using ProgressFn = std::function<void(std::string_view what, uint64_t done, uint64_t total)>;

}  // namespace deepinfer
