#include "engine/text.h"

#include <cstdint>

#include "tokenizer/utf8.h"

namespace deepinfer {

size_t FindInvalidUtf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Step step = ReadUtf8(text, offset);
    if (step.status != Utf8Status::kValid) break;
    offset += step.length;
  }
  return offset;
}

Status RequireUtf8(std::string_view text, std::string_view what) {
  const size_t offset = FindInvalidUtf8(text);
  if (offset == text.size()) return {};
  return MakeError(ErrorCode::kInvalidArgument,
                   "{} is not valid UTF-8: byte 0x{:02X} at offset {} begins no character", what,
                   static_cast<uint8_t>(text[offset]), offset);
}

}  // namespace deepinfer
