#include "tokenizer/engram_token_map.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/bytes_index.h"
#include "tokenizer/char_class.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

// Stands for a text of exactly one space while both ends are stripped, as in the release.
constexpr uint32_t kSpaceMarker = 0xe000;

// Turns text into the code points of its key. Keeps its buffers between calls.
class KeyNormalizer {
 public:
  // `text` is valid UTF-8.
  std::string_view Normalize(std::string_view text) {
    DecomposeWithoutMarks(text);
    CollapseBlanks();
    if (code_points_.size() == 1 && code_points_[0] == ' ') code_points_[0] = kSpaceMarker;
    const auto is_space = [](uint32_t c) {
      const CharClass char_class = ClassOf(c);
      return char_class == CharClass::kSpace || char_class == CharClass::kNewline;
    };
    const auto begin = std::find_if_not(code_points_.begin(), code_points_.end(), is_space);
    const auto end =
        std::find_if_not(code_points_.rbegin(), std::make_reverse_iterator(begin), is_space).base();
    key_.clear();
    std::for_each(begin, end, [&](uint32_t c) { AppendUtf8(c == kSpaceMarker ? ' ' : c, key_); });
    return key_;
  }

 private:
  // NFKC, then NFD, then without marks, then lower case one character at a time (no final sigma).
  // NFD of NFKC is NFKD.
  void DecomposeWithoutMarks(std::string_view text) {
    code_points_.clear();
    if (std::all_of(text.begin(), text.end(),
                    [](char c) { return static_cast<uint8_t>(c) < 128; })) {
      for (const char c : text) code_points_.push_back(c >= 'A' && c <= 'Z' ? c + 32 : c);
      return;
    }
    constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                             UTF8PROC_COMPAT | UTF8PROC_STRIPMARK);
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto size = static_cast<utf8proc_ssize_t>(text.size());
    const utf8proc_ssize_t count = utf8proc_decompose(bytes, size, nullptr, 0, kOptions);
    buffer_.resize(static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0)));
    utf8proc_decompose(bytes, size, buffer_.data(), count, kOptions);
    for (const utf8proc_int32_t c : buffer_) {
      code_points_.push_back(static_cast<uint32_t>(utf8proc_tolower(c)));
    }
  }

  // Runs of space, tab, CR and LF become one space.
  void CollapseBlanks() {
    size_t size = 0;
    bool in_run = false;
    for (const uint32_t c : code_points_) {
      const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      if (!is_blank || !in_run) code_points_[size++] = is_blank ? ' ' : c;
      in_run = is_blank;
    }
    code_points_.resize(size);
  }

  std::vector<utf8proc_int32_t> buffer_;
  std::vector<uint32_t> code_points_;
  std::string key_;
};

}  // namespace

Result<std::vector<int32_t>> BuildEngramTokenMap(const Tokenizer& tokenizer, int64_t vocab_size,
                                                 std::optional<int64_t> expected_compressed) {
  if (vocab_size < tokenizer.vocab_size()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the tokenizer has ids up to {}, the model's vocabulary only {}",
                     tokenizer.vocab_size() - 1, vocab_size);
  }
  std::vector<int32_t> map(static_cast<size_t>(vocab_size));
  BytesIndex keys(map.size());
  KeyNormalizer normalizer;
  std::string text;
  for (int64_t id = 0; id < vocab_size; ++id) {
    const std::string_view bytes = tokenizer.TokenBytes(static_cast<int32_t>(id));
    text.clear();
    const bool is_whole = AppendRepaired(bytes, text) == 0;
    const bool is_text = is_whole && text.find(kReplacementCharacter) == std::string::npos;
    auto& compressed = map[static_cast<size_t>(id)];
    if (!is_text) {
      const bool is_added = tokenizer.IsAdded(static_cast<int32_t>(id));
      compressed = keys.Insert(is_added ? std::string(bytes) : SpellingOfBytes(bytes)).index;
      continue;
    }
    const std::string_view key = normalizer.Normalize(bytes);
    compressed = keys.Insert(key.empty() ? bytes : key).index;
  }
  if (expected_compressed && keys.size() != *expected_compressed) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "the tokenizer gives {} compressed Engram ids, the configuration says {} "
                     "(engram_compressed_vocab_size)",
                     keys.size(), *expected_compressed);
  }
  return map;
}

}  // namespace deepinfer
