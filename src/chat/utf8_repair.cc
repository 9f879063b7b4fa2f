#include "chat/utf8_repair.h"

#include <cstdint>

namespace deepinfer {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of the character that `lead` begins; 1 also where it begins none.
size_t CharacterBytes(uint8_t lead) {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Whether `byte` may follow `held`, the valid beginning of a character.
bool Continues(std::string_view held, uint8_t byte) {
  if ((byte & 0xc0) != 0x80) return false;
  if (held.size() > 1) return true;
  switch (static_cast<uint8_t>(held[0])) {
    case 0xe0:
      return byte >= 0xa0;
    case 0xed:
      return byte <= 0x9f;
    case 0xf0:
      return byte >= 0x90;
    case 0xf4:
      return byte <= 0x8f;
    default:
      return true;
  }
}

}  // namespace

void Utf8Repair::Push(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (!held_.empty()) {
      if (Continues(held_, byte)) {
        held_ += c;
        if (held_.size() == CharacterBytes(static_cast<uint8_t>(held_[0]))) {
          out += held_;
          held_.clear();
        }
        continue;
      }
      Finish(out);
    }
    if (byte < 0x80) {
      out += c;
    } else if (CharacterBytes(byte) > 1) {
      held_ = c;
    } else {
      out += kReplacement;
    }
  }
}

void Utf8Repair::Finish(std::string& out) {
  if (!held_.empty()) out += kReplacement;
  held_.clear();
}

}  // namespace deepinfer
