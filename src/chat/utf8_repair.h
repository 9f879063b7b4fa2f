// Makes any stream of bytes valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer {

// Passes whole characters on and holds incomplete ones. A sequence that cannot become a character
// (its longest valid beginning, as Unicode recommends) turns into one U+FFFD. The result does not
// depend on how the bytes are cut. Copyable.
class Utf8Repair {
 public:
  // Appends what is certain to `out`: whole characters only.
  void Push(std::string_view bytes, std::string& out);
  // The stream has ended: an incomplete character becomes U+FFFD.
  void Finish(std::string& out);

 private:
  std::string held_;  // the beginning of a character, at most 3 bytes
};

}  // namespace deepinfer
