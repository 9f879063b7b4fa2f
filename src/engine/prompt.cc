#include "engine/prompt.h"

#include "engine/text.h"

namespace deepinfer {

Result<Prompt> TokenizePrompt(const EncodedPrompt& encoded, const Tokenizer& tokenizer) {
  if (!encoded.images.empty()) {
    return MakeError(ErrorCode::kUnsupported,
                     "the request has {} images; this engine reads text only",
                     encoded.images.size());
  }
  Prompt prompt;
  prompt.start_state = encoded.start_state;
  for (const Segment& segment : encoded.segments) {
    if (segment.kind == Segment::Kind::kText) {
      tokenizer.Encode(segment.text, SpecialTokens::kAsText, prompt.tokens);
      continue;
    }
    const std::optional<int32_t> id = tokenizer.FindToken(segment.text);
    if (!id) {
      return MakeError(ErrorCode::kUnsupported,
                       "the checkpoint's tokenizer has no token {}, which the prompt needs",
                       segment.text);
    }
    prompt.tokens.push_back(*id);
  }
  return prompt;
}

Result<Prompt> ChatPrompt(const ChatRequest& request, const Tokenizer& tokenizer) {
  if (request.messages.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty: it has no messages");
  }
  DI_ASSIGN_OR_RETURN(const EncodedPrompt encoded, EncodePrompt(request));
  return TokenizePrompt(encoded, tokenizer);
}

Result<Prompt> RawPrompt(std::string_view text, const Tokenizer& tokenizer,
                         const ModelConfig& config) {
  if (text.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "the prompt is empty");
  }
  DI_RETURN_IF_ERROR(RequireUtf8(text, "the prompt"));
  Prompt prompt;
  prompt.tokens.push_back(config.bos_token);
  tokenizer.Encode(text, SpecialTokens::kAsText, prompt.tokens);
  return prompt;
}

}  // namespace deepinfer
