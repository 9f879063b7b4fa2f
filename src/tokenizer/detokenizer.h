// Ids to text while they arrive, one after another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace deepinfer {

// The concatenation of all that Push and Finish return equals Tokenizer::Decode of all ids, and
// every piece is whole UTF-8 characters. Holds back at most three bytes. Belongs to one thread.
class Detokenizer {
 public:
  explicit Detokenizer(Tokenizer tokenizer);

  // The text that is certain now that `id` follows: possibly empty.
  std::string Push(int32_t id);
  // The text of what was held back: empty, or one U+FFFD. Afterwards the object is as new.
  std::string Finish();

 private:
  Tokenizer tokenizer_;
  std::string held_;  // a proper prefix of a valid UTF-8 sequence
};

}  // namespace deepinfer
