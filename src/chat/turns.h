// How a prompt groups the messages of a request (spec chat section 2). Internal to src/chat.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"

namespace deepinfer {

// A block of a user turn.
struct TurnBlock {
  const ContentBlock* block = nullptr;                       // set: no result of a tool message
  const std::vector<ContentBlock>* result = nullptr;         // set: the content of a tool's result
  const std::optional<std::string>* tool_call_id = nullptr;  // of the result
  size_t message = 0;                                        // index in the request, for errors
};

// Messages that the prompt shows as one.
struct Turn {
  Role role = Role::kUser;                   // never kTool
  std::vector<TurnBlock> blocks;             // user
  std::vector<const ChatMessage*> messages;  // the others; more than one for assistants only
  std::optional<Task> task;
  bool wo_eos = false;
};

// Merges consecutive user and tool messages, and consecutive assistant messages, except after a
// task. The turns point into `messages`. The first `num_inserted` messages are no part of the
// request; indices in errors do not count them.
std::vector<Turn> MergeMessages(const std::vector<ChatMessage>& messages, size_t num_inserted);

// Puts the results of every user turn, among their own places, in the order of the calls that they
// answer. A result that no call of the preceding assistant turn has the id of is an error.
Status OrderResults(std::vector<Turn>& turns);

}  // namespace deepinfer
