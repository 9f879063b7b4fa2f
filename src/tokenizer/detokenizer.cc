#include "tokenizer/detokenizer.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace deepinfer {

Detokenizer::Detokenizer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

std::string Detokenizer::Push(int32_t id) {
  held_.append(tokenizer_.TokenBytes(id));
  std::string text;
  const size_t truncated = AppendRepaired(held_, text);
  held_.erase(0, held_.size() - truncated);
  return text;
}

std::string Detokenizer::Finish() {
  std::string text = RepairUtf8(held_);
  held_.clear();
  return text;
}

}  // namespace deepinfer
