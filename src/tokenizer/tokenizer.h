// Byte-level BPE as a Hugging Face tokenizer.json describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deepinfer {

// What Encode does with text that spells an added token (special or not).
enum class SpecialTokens {
  kParse,   // it becomes that token, leftmost match first, the longest of them
  kAsText,  // it is ordinary text: no input can forge a control token
};

// A cheap handle of one immutable tokenizer: copies share it, every method is thread-safe. Only a
// moved-from handle is empty, and may only be assigned to or destroyed.
class Tokenizer {
 public:
  // Reads what the DeepSeek releases use: model BPE over all 256 bytes, no normaliser, the three
  // known Split patterns in any order and number before a ByteLevel stage, the ByteLevel decoder,
  // added tokens without lstrip, rstrip or single_word. Anything else that would change the ids is
  // kUnsupported and named, never approximated. The post-processor is not read: Encode adds no
  // token by itself. A file that contradicts itself is kDataLoss. Ids lie in [0, 2^24).
  static Result<Tokenizer> FromJson(std::string_view json);
  static Result<Tokenizer> FromFile(const std::filesystem::path& path);

  // Any bytes may be encoded, and DecodeBytes gives them back exactly. On valid UTF-8 the ids equal
  // Hugging Face's with add_special_tokens=False; each byte that belongs to no valid sequence
  // counts as one character outside every class (letter, mark, number, punctuation, symbol, space).
  // O(n log n) in the text's bytes.
  std::vector<int32_t> Encode(std::string_view text, SpecialTokens specials) const;
  // Appends to `ids`.
  void Encode(std::string_view text, SpecialTokens specials, std::vector<int32_t>& ids) const;

  // The bytes that the ids stand for, one after another. Ids without a token stand for nothing.
  std::string DecodeBytes(std::span<const int32_t> ids) const;
  // The same as UTF-8 text: each maximal prefix of a valid sequence that is not one becomes U+FFFD
  // (the replacement of the WHATWG and Unicode standards). Special tokens are kept.
  std::string Decode(std::span<const int32_t> ids) const;

  // The bytes that one id stands for, valid while any copy of this handle lives; empty for ids
  // without a token.
  std::string_view TokenBytes(int32_t id) const;
  // The token that stands for exactly these bytes (" the", "<think>"); added tokens go first.
  std::optional<int32_t> FindToken(std::string_view content) const;

  // Listed under added_tokens; and there with "special": true. False for ids without a token.
  bool IsAdded(int32_t id) const;
  bool IsSpecial(int32_t id) const;

  // The largest id + 1. Ids below it may have no token.
  int32_t vocab_size() const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace deepinfer
