#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

struct Alphabet {
  std::array<uint16_t, 256> character_of_byte{};
  std::array<int16_t, 0x144> byte_of_character{};  // -1: not in the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte_of_character.fill(-1);
  uint16_t next = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    const bool is_printable =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
    const uint16_t character = is_printable ? static_cast<uint16_t>(byte) : next++;
    alphabet.character_of_byte[static_cast<size_t>(byte)] = character;
    alphabet.byte_of_character[character] = byte;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t pos = 0; pos < spelling.size();) {
    const Utf8Step step = ReadUtf8(spelling, pos);
    const bool is_known = step.status == Utf8Status::kValid &&
                          step.code_point < kAlphabet.byte_of_character.size() &&
                          kAlphabet.byte_of_character[step.code_point] >= 0;
    if (!is_known) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte_of_character[step.code_point]));
    pos += step.length;
  }
  return bytes;
}

std::string SpellingOfBytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() * 2);
  for (const char byte : bytes)
    AppendUtf8(kAlphabet.character_of_byte[static_cast<uint8_t>(byte)], spelling);
  return spelling;
}

}  // namespace deepinfer
