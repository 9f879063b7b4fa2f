// From a request's text to the token ids that the model reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/encode.h"
#include "chat/message.h"
#include "chat/start_state.h"
#include "config/model_config.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

struct Prompt {
  std::vector<int32_t> tokens;
  // How the output is to be parsed; empty for a plain completion, whose output is text as it is.
  std::optional<StartState> start_state;
};

// Control pieces become the checkpoint's own tokens, text pieces ordinary text.
// Errors: a control token that the tokenizer lacks; images, which this engine does not read.
Result<Prompt> TokenizePrompt(const EncodedPrompt& encoded, const Tokenizer& tokenizer);

// Renders and tokenises a chat request. Errors also name a request without messages.
Result<Prompt> ChatPrompt(const ChatRequest& request, const Tokenizer& tokenizer);

// The begin-of-sentence token and the text, in which nothing is a control token.
// Errors: empty text, text that is not UTF-8.
Result<Prompt> RawPrompt(std::string_view text, const Tokenizer& tokenizer,
                         const ModelConfig& config);

}  // namespace deepinfer
