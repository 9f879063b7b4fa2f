#include "sampling/token_history.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

using Entries = std::vector<TokenHistory::Entry>;

Entries All(const TokenHistory& history) {
  return {history.entries().begin(), history.entries().end()};
}

TEST(TokenHistory, CountsOutputAndRemembersThePrompt) {
  TokenHistory history(std::vector<int32_t>{7, 3, 7});
  history.Append(3);
  history.Append(129279);
  history.Append(3);
  EXPECT_EQ(All(history), (Entries{{7, 0, true}, {3, 2, true}, {129279, 1, false}}));
  EXPECT_EQ(history.output_length(), 3);
}

TEST(TokenHistory, RollbackForgetsTokensButNotThePrompt) {
  TokenHistory history(std::vector<int32_t>{7});
  history.Append(7);
  const Entries before = All(history);
  for (const int32_t token : {9, 7, 9, 11}) history.Append(token);
  history.Rollback(4);
  EXPECT_EQ(All(history), before);
  history.Rollback(1);
  EXPECT_EQ(All(history), (Entries{{7, 0, true}}));
  EXPECT_EQ(history.output_length(), 0);
}

// Rejected drafts must not grow a request: entries that only they made are gone.
TEST(TokenHistory, RejectedDraftsLeaveNothingBehind) {
  TokenHistory history;
  for (int32_t token = 0; token < 100000; ++token) {
    history.Append(token);
    history.Rollback(1);
  }
  EXPECT_TRUE(history.entries().empty());
}

}  // namespace
}  // namespace deepinfer
