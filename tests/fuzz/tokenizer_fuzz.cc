// tokenizer.json of any content, and any text through whatever loads.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// A tokenizer of the 256 bytes, a few merges and two overlapping added tokens.
Tokenizer FixedTokenizer() {
  std::string json = R"({"model":{"type":"BPE","vocab":{"ab":256,"abc":257,"ĠĠ":258,"ä¸":259)";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = SpellingOfBytes(std::string(1, static_cast<char>(byte)));
    json += ",\"" + std::string(byte == '"' || byte == '\\' ? "\\" : "") + spelling +
            "\":" + std::to_string(byte);
  }
  json +=
      R"(},"merges":["a b","ab c","Ġ Ġ","ä ¸"]},"decoder":{"type":"ByteLevel"},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
      R"({"type":"Split","behavior":"Isolated","pattern":{"Regex":"\\p{N}{1,3}"}},)"
      R"({"type":"Split","behavior":"Isolated","pattern":{"Regex":"[一-龥぀-ゟ゠-ヿ]+"}},)"
      R"({"type":"Split","behavior":"Isolated","pattern":{"Regex":)"
      R"("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?)"
      R"([\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},"added_tokens":[)";
  const std::string flags = R"(,"single_word":false,"lstrip":false,"rstrip":false,"special":true,)";
  json += R"({"id":300,"content":"<a>")" + flags + R"("normalized":false},)";
  json += R"({"id":301,"content":"a>b")" + flags + R"("normalized":true}]})";
  auto tokenizer = Tokenizer::FromJson(json);
  Require(tokenizer.has_value());
  return *tokenizer;
}

void CheckText(const Tokenizer& tokenizer, std::string_view text) {
  for (const auto specials : {SpecialTokens::kParse, SpecialTokens::kAsText}) {
    const std::vector<int32_t> ids = tokenizer.Encode(text, specials);
    Require(tokenizer.DecodeBytes(ids) == text);
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += detokenizer.Push(id);
    Require(streamed + detokenizer.Finish() == tokenizer.Decode(ids));
  }
}

}  // namespace
}  // namespace deepinfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using deepinfer::Tokenizer;
  static const Tokenizer fixed = deepinfer::FixedTokenizer();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  deepinfer::CheckText(fixed, input);
  const auto tokenizer = Tokenizer::FromJson(input);
  if (!tokenizer) {
    deepinfer::Require(!tokenizer.error().message.empty());
    return 0;
  }
  deepinfer::CheckText(*tokenizer, input);
  if (tokenizer->vocab_size() <= 1 << 16) {
    (void)deepinfer::BuildEngramTokenMap(*tokenizer, tokenizer->vocab_size(), 1);
  }
  return 0;
}
