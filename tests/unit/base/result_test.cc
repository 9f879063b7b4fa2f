#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace deepinfer {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return MakeError(ErrorCode::kInvalidArgument, "{} is odd", x);
  return x / 2;
}

Result<int> Quarter(int x) {
  DI_ASSIGN_OR_RETURN(const int half, Half(x));
  DI_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckEven(int x) {
  DI_RETURN_IF_ERROR(Half(x));
  return {};
}

TEST(Result, MacrosPassValuesOnAndReturnTheFirstError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(CheckEven(2));
  EXPECT_EQ(CheckEven(5).error().code, ErrorCode::kInvalidArgument);
}

TEST(Result, MacrosMoveValuesThatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  const auto use = [&]() -> Result<int> {
    DI_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, make());
    return *value;
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(Result, ForwardAddsContextAndKeepsTheCode) {
  const Status status = Forward(Error{ErrorCode::kIo, "disk on fire"}, "saving");
  EXPECT_EQ(status.error().message, "saving: disk on fire");
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace deepinfer
