// Renders a chat request as the prompt of DeepSeek-V4.1 (spec chat sections 2 and 3).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/start_state.h"

namespace deepinfer {

// One piece of a prompt. Text of the request is only ever in kText pieces, which must be tokenised
// as ordinary text, so that no request can spell a control token.
struct Segment {
  enum class Kind { kControl, kText };
  Kind kind = Kind::kText;
  std::string text;  // kControl: the text of exactly one control token (chat/tokens.h)
  friend bool operator==(const Segment&, const Segment&) = default;
};

struct EncodedPrompt {
  std::vector<Segment> segments;  // no empty piece; no two text pieces side by side
  StartState start_state = StartState::kNone;
  std::vector<ImageRecord> images;  // one an image placeholder, in prompt order

  // All pieces joined: for display and comparison, never to be tokenised.
  std::string Text() const;
};

// Errors: an effort outside 1..100, a tool result that no call of the preceding assistant turn
// asked for. They have a ChatErrorKind.
Result<EncodedPrompt> EncodePrompt(const ChatRequest& request);

}  // namespace deepinfer
