#include "chat/turns.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "chat/chat_error.h"

namespace deepinfer {
namespace {

void AddUserBlocks(const ChatMessage& message, size_t index, Turn& turn) {
  if (message.role == Role::kTool) {
    turn.blocks.push_back({nullptr, &message.content, &message.tool_call_id, index});
    return;
  }
  for (const ContentBlock& block : message.content) {
    const bool is_result = block.kind == ContentBlock::Kind::kToolResult;
    turn.blocks.push_back({&block, is_result ? &block.result : nullptr,
                           is_result ? &block.tool_call_id : nullptr, index});
  }
}

}  // namespace

std::vector<Turn> MergeMessages(const std::vector<ChatMessage>& messages, size_t num_inserted) {
  std::vector<Turn> turns;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const bool is_user = message.role == Role::kUser || message.role == Role::kTool;
    const Role role = is_user ? Role::kUser : message.role;
    const bool same = !turns.empty() && turns.back().role == role;
    // A task ends its turn, except that a tool's result always joins the user turn before it.
    const bool merges = same && (message.role == Role::kTool ||
                                 ((is_user || role == Role::kAssistant) && !turns.back().task));
    if (!merges) {
      turns.emplace_back().role = role;
      turns.back().task = message.role == Role::kTool ? std::nullopt : message.task;
    }
    Turn& turn = turns.back();
    if (is_user) {
      AddUserBlocks(message, i - num_inserted, turn);
      continue;
    }
    turn.messages.push_back(&message);
    turn.task = message.task;
    turn.wo_eos = message.wo_eos;
  }
  return turns;
}

Status OrderResults(std::vector<Turn>& turns) {
  std::map<std::string_view, size_t> order;  // of the calls that may be answered now
  size_t num_calls = 0;
  for (size_t t = 0; t < turns.size(); ++t) {
    if (turns[t].role == Role::kAssistant) {
      if (t == 0 || turns[t - 1].role != Role::kAssistant) order.clear();
      for (const ChatMessage* message : turns[t].messages) {
        for (const ToolCall& call : message->tool_calls) {
          if (call.id && !call.id->empty()) order[*call.id] = num_calls++;
        }
      }
    }
    const std::vector<TurnBlock> blocks = turns[t].blocks;
    std::vector<size_t> places;
    std::vector<std::pair<size_t, size_t>> results;  // the call's order, the result's place
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].result == nullptr) continue;
      const std::optional<std::string>& id = *blocks[b].tool_call_id;
      const auto found = id ? order.find(*id) : order.end();
      if (found == order.end()) {
        return MakeChatError(
            ChatErrorKind::kUnrequestedToolResult,
            fmt::format("messages[{}]: no call of the preceding assistant turn has the id {}",
                        blocks[b].message, id ? "\"" + *id + "\"" : "null"));
      }
      places.push_back(b);
      results.emplace_back(found->second, b);
    }
    std::sort(results.begin(), results.end());
    for (size_t i = 0; i < places.size(); ++i) {
      turns[t].blocks[places[i]] = blocks[results[i].second];
    }
  }
  return {};
}

}  // namespace deepinfer
