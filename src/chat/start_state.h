// Where the model's output begins, given the rendered prompt.
#pragma once

namespace deepinfer {

// Follows from the last think marker of the prompt (spec chat section 4).
enum class StartState {
  kNone,             // the prompt ends in no open assistant turn; parsed like kAnswer
  kReasoning,        // after <think>
  kAnswer,           // after </think> or a task token: leading newlines are dropped
  kAnswerContinued,  // inside an answer that the request began: nothing is dropped
};

}  // namespace deepinfer
