// The main function of every gtest program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace {

// With DEEPINFER_REQUIRE_GOLDENS=1 a test that skips itself for want of goldens fails instead. Such
// tests are known by the word "golden" in the message of their GTEST_SKIP.
class GoldenRequirement : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& info) override {
    const ::testing::TestResult& result = *info.result();
    if (!result.Skipped()) return;
    for (int i = 0; i < result.total_part_count(); ++i) {
      const std::string_view message = result.GetTestPartResult(i).message();
      if (message.find("golden") != std::string_view::npos) {
        ADD_FAILURE() << "goldens are required here (DEEPINFER_REQUIRE_GOLDENS=1): " << message;
        return;
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const char* required = std::getenv("DEEPINFER_REQUIRE_GOLDENS");
  if (required != nullptr && std::string_view(required) == "1") {
    ::testing::UnitTest::GetInstance()->listeners().Append(new GoldenRequirement);
  }
  return RUN_ALL_TESTS();
}
