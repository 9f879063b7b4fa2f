#include "loader/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/loader/tiny_checkpoint.h"

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::vector<SafetensorsEntry>> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "file");
}

// The error of a file with this header over `data_bytes` bytes.
std::string ErrorOf(const std::string& header, size_t data_bytes = 8) {
  const auto parsed = Parse(SafetensorsBytes(header, std::string(data_bytes, 'd')));
  return parsed ? "accepted" : parsed.error().message;
}

std::string One(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, ListsTensorsInTheOrderOfTheirBytes) {
  // "b" comes first in the data, though not in the header.
  const auto parsed = Parse(SafetensorsBytes(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}  )",
      "bbbbaaaa"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].name, "b");
  EXPECT_EQ((*parsed)[0].dtype, DType::kBF16);
  EXPECT_THAT((*parsed)[0].shape, ElementsAre(2, 1));
  EXPECT_EQ((*parsed)[0].end - (*parsed)[0].begin, 4u);
  EXPECT_EQ((*parsed)[1].name, "a");
  EXPECT_EQ((*parsed)[1].begin, (*parsed)[0].end);
}

TEST(Safetensors, AcceptsEveryDTypeScalarsAndEmptyTensors) {
  const FileTensors tensors = {{"bf", {"BF16", {2}, "1234"}}, {"e4", {"F8_E4M3", {2, 2}, "1234"}},
                               {"e8", {"F8_E8M0", {1}, "1"}}, {"empty", {"F32", {3, 0}, ""}},
                               {"f", {"F32", {}, "1234"}},    {"i8", {"I8", {1}, "1"}},
                               {"i32", {"I32", {1}, "1234"}}, {"i64", {"I64", {1}, "12345678"}},
                               {"u8", {"U8", {1, 1, 1}, "1"}}};
  const auto parsed = Parse(SafetensorsBytes(tensors));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->size(), tensors.size());
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "")).value(), IsEmpty());
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string file =
      SafetensorsBytes({{"a", {"F32", {2}, "12345678"}}, {"b", {"U8", {3}, "123"}}});
  for (size_t length = 0; length < file.size(); ++length) {
    const auto parsed = Parse(file.substr(0, length));
    ASSERT_FALSE(parsed) << length;
    EXPECT_EQ(parsed.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(parsed.error().message, HasSubstr("file"));
  }
  EXPECT_TRUE(Parse(file));
  EXPECT_THAT(Parse(file + "x").error().message,
              HasSubstr("1 data bytes after the last tensor belong to none"));
}

TEST(Safetensors, LyingHeaderLengthsAreRefused) {
  for (uint64_t length : {uint64_t{11}, uint64_t{1} << 20, kMaxSafetensorsHeaderBytes + 1,
                          uint64_t{1} << 63, ~uint64_t{0}}) {
    std::string file = SafetensorsBytes("{}", "12345678");
    std::memcpy(file.data(), &length, sizeof length);
    const auto parsed = Parse(file);
    ASSERT_FALSE(parsed) << length;
    EXPECT_THAT(parsed.error().message,
                HasSubstr(fmt::format("announces a header of {} bytes", length)));
  }
}

TEST(Safetensors, HeadersThatAreNoObjectAreRefused) {
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("header is []; it must be an object"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("header is 7"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("nest deeper"));
  EXPECT_THAT(ErrorOf(R"({"t":[1]})"), HasSubstr("tensor t is [1] instead of an object"));
}

TEST(Safetensors, UnknownDTypesAreNamed) {
  EXPECT_THAT(ErrorOf(One("\"F16\"", "[4]", "[0,8]")),
              AllOf(HasSubstr("tensor t has dtype \"F16\""), HasSubstr("known are BF16")));
  const auto parsed = Parse(SafetensorsBytes(One("\"F64\"", "[1]", "[0,8]"), "12345678"));
  EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(ErrorOf(One("3", "[4]", "[0,8]")), HasSubstr("dtype 3"));
  EXPECT_THAT(ErrorOf(R"({"t":{"shape":[8],"data_offsets":[0,8]}})"), HasSubstr("dtype null"));
}

TEST(Safetensors, BadShapesAreRefused) {
  for (const char* shape :
       {"[-1]", "[1.5]", "\"8\"", "null", "{}", "[\"8\"]", "[18446744073709551615]",
        "[4294967296,4294967296]", "[4611686018427387904,2]", "[1,1,1,1,1,1,1,1,8]"}) {
    EXPECT_THAT(ErrorOf(One("\"U8\"", shape, "[0,8]")), HasSubstr("tensor t has shape ")) << shape;
  }
}

TEST(Safetensors, BadOffsetsAreRefused) {
  for (const char* offsets : {"[0]", "[0,4,8]", "[-1,8]", "[0,8.0]", "\"0,8\"", "null", "[0,null]",
                              "[0,18446744073709551616]"}) {
    EXPECT_THAT(ErrorOf(One("\"U8\"", "[8]", offsets)), HasSubstr("has data_offsets")) << offsets;
  }
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[8]", "[8,0]")), HasSubstr("must be ascending"));
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[9]", "[0,9]")), HasSubstr("within the 8 data bytes"));
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[1]", "[18446744073709551614,18446744073709551615]")),
              HasSubstr("within the 8 data bytes"));
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[7]", "[0,8]")),
              HasSubstr("has 8 data bytes, but U8 [7] needs 7"));
  EXPECT_THAT(ErrorOf(One("\"F32\"", "[8]", "[0,8]")), HasSubstr("F32 [8] needs 32"));
}

TEST(Safetensors, OverlapsHolesAndDuplicatesAreRefused) {
  const auto two = [](const char* a, const char* b, const char* name_b = "b") {
    return ErrorOf(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                               R"("{}":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                               a, name_b, b));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), "accepted");
  EXPECT_EQ(two("[4,8]", "[0,4]"), "accepted");
  EXPECT_THAT(two("[0,4]", "[3,7]"), HasSubstr("tensor b starts at data byte 3, overlapping"));
  EXPECT_THAT(two("[0,4]", "[0,4]"), HasSubstr("overlapping"));
  EXPECT_THAT(two("[4,8]", "[4,8]"), HasSubstr("after a gap"));
  EXPECT_THAT(two("[0,4]", "[4,8]", "a"), HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[4]", "[4,8]")),
              HasSubstr("tensor t starts at data byte 4, after a gap behind the end"));
  EXPECT_THAT(ErrorOf(One("\"U8\"", "[4]", "[0,4]")), HasSubstr("4 data bytes after the last"));
}

TEST(Safetensors, NamesThatWouldGarbleATerminalAreRefused) {
  for (const char* name : {"", "a b", "\\u001b[31m", "\\u0000", "\u00e9"}) {
    const std::string error =
        ErrorOf(fmt::format(R"({{"{}":{{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}}})", name));
    EXPECT_THAT(error, HasSubstr("is no tensor name"));
    for (unsigned char c : error) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  }
}

TEST(Safetensors, AnyFlippedHeaderBitGivesAnErrorOrRangesInsideTheFile) {
  const std::string file =
      SafetensorsBytes({{"a", {"F32", {2}, "12345678"}}, {"bb", {"U8", {3}, "123"}}});
  const size_t header_end = file.size() - 11;
  for (size_t i = 0; i < header_end; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto parsed = Parse(flipped);
      if (!parsed) continue;
      for (const SafetensorsEntry& entry : *parsed) {
        ASSERT_LE(entry.begin, entry.end);
        ASSERT_LE(entry.end, file.size());
        ASSERT_EQ((TensorView{entry.dtype, entry.shape, nullptr}.bytes()), entry.end - entry.begin);
      }
    }
  }
}

TEST(SafetensorsFile, ViewsAreTheMappedBytesAndSurviveAMove) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  WriteBytes(path, SafetensorsBytes({{"a", {"U8", {2}, "hi"}}, {"b", {"U8", {2, 2}, "four"}}}));
  auto opened = SafetensorsFile::Open(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const SafetensorsFile file = std::move(*opened);
  EXPECT_EQ(file.tensors().size(), 2u);
  ASSERT_NE(file.Find("b"), nullptr);
  EXPECT_EQ(std::memcmp(file.Find("b")->data, "four", 4), 0);
  const std::span<const std::byte> bytes = file.file().bytes();
  EXPECT_EQ(file.Find("b")->data + 4, bytes.data() + bytes.size()) << "no copy was made";
  EXPECT_EQ(file.Find("c"), nullptr);
}

TEST(SafetensorsFile, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "broken.safetensors";
  WriteBytes(path, "short");
  EXPECT_THAT(SafetensorsFile::Open(path).error().message,
              AllOf(HasSubstr(path.string()), HasSubstr("5 bytes")));
  EXPECT_EQ(SafetensorsFile::Open(folder.path() / "none").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace deepinfer
