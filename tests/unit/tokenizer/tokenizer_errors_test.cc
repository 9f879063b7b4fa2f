#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/tokenizer/tiny_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const Merges kMerges = {{"a", "b"}, {"ab", "c"}};

void ExpectError(const std::string& json, ErrorCode code, const std::string& part_one,
                 const std::string& part_two = "") {
  const auto tokenizer = Tokenizer::FromJson(json);
  ASSERT_FALSE(tokenizer) << "accepted, expected an error about " << part_one;
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_THAT(tokenizer.error().message, AllOf(HasSubstr(part_one), HasSubstr(part_two)));
}

// The tiny tokenizer with one thing changed.
void ExpectErrorAfter(const std::function<void(Json&)>& change, ErrorCode code,
                      const std::string& part_one, const std::string& part_two = "") {
  Json json = TinyTokenizerJson(kMerges, {AddedTokenJson(300, "<x>", true)});
  ASSERT_TRUE(Tokenizer::FromJson(json.dump()));
  change(json);
  ExpectError(json.dump(), code, part_one, part_two);
}

constexpr auto kDataLoss = ErrorCode::kDataLoss;
constexpr auto kUnsupported = ErrorCode::kUnsupported;

TEST(TokenizerErrorsTest, WhatIsNotJsonIsRefused) {
  ExpectError("", kDataLoss, "tokenizer.json", "parse error");
  ExpectError("{", kDataLoss, "parse error");
  ExpectError("{} x", kDataLoss, "parse error");
  ExpectError("\xff\xfe", kDataLoss, "parse error");
  ExpectError("{\"a\":\"\xff\"}", kDataLoss, "parse error");
  ExpectError("[]", kDataLoss, "the file is []");
  ExpectError("null", kDataLoss, "the file is null");
  ExpectError("3", kDataLoss, "the file is 3");
  ExpectError(std::string(100000, '['), kDataLoss, "nests deeper than");
  ExpectError(R"({"model":{},"model":{}})", kDataLoss, "repeats the key \"model\"");
  ExpectError(R"({"model":{"vocab":{},"vocab":{}}})", kDataLoss, "repeats the key \"vocab\"");
  std::string cut = TinyTokenizerJson(kMerges).dump();
  cut.resize(cut.size() - 2);
  ExpectError(cut, kDataLoss, "parse error");
}

TEST(TokenizerErrorsTest, OtherModelsAreRefusedByName) {
  ExpectErrorAfter([](Json& j) { j.erase("model"); }, kDataLoss, "model is null");
  ExpectErrorAfter([](Json& j) { j["model"] = 3; }, kDataLoss, "model is 3");
  ExpectErrorAfter([](Json& j) { j["model"]["type"] = "Unigram"; }, kUnsupported,
                   "model.type is \"Unigram\"", "\"BPE\"");
  ExpectErrorAfter([](Json& j) { j["model"].erase("type"); }, kUnsupported, "model.type is null");
  ExpectErrorAfter([](Json& j) { j["model"]["dropout"] = 0.1; }, kUnsupported, "model.dropout");
  ExpectErrorAfter([](Json& j) { j["model"]["byte_fallback"] = true; }, kUnsupported,
                   "model.byte_fallback is true");
  ExpectErrorAfter([](Json& j) { j["model"]["ignore_merges"] = true; }, kUnsupported,
                   "model.ignore_merges is true");
  ExpectErrorAfter([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, kUnsupported,
                   "model.end_of_word_suffix");
  ExpectErrorAfter([](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; }, kUnsupported,
                   "model.continuing_subword_prefix");
}

TEST(TokenizerErrorsTest, OtherPipelinesAreRefusedByName) {
  ExpectErrorAfter([](Json& j) { j["normalizer"] = {{"type", "NFC"}}; }, kUnsupported,
                   "normalizer is {\"type\":\"NFC\"}");
  ExpectErrorAfter([](Json& j) { j["truncation"] = {{"max_length", 8}}; }, kUnsupported,
                   "truncation");
  ExpectErrorAfter([](Json& j) { j["padding"] = 1; }, kUnsupported, "padding is 1");
  ExpectErrorAfter([](Json& j) { j["decoder"] = nullptr; }, kDataLoss, "decoder is null");
  ExpectErrorAfter([](Json& j) { j["decoder"]["type"] = "Metaspace"; }, kUnsupported,
                   "decoder.type is \"Metaspace\"");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"] = nullptr; }, kDataLoss,
                   "pre_tokenizer is null");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"]["pretokenizers"] = Json::array(); }, kDataLoss,
                   "pre_tokenizer.pretokenizers is []");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"]["pretokenizers"] = "x"; }, kDataLoss,
                   "pre_tokenizer.pretokenizers is \"x\"");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"]["pretokenizers"][1] = 5; }, kDataLoss,
                   "pre_tokenizer.pretokenizers[1] is 5");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"]["pretokenizers"].erase(3); }, kUnsupported,
                   "pre_tokenizer.pretokenizers[2].type is \"Split\"", "\"ByteLevel\"");
  ExpectErrorAfter([](Json& j) { j["pre_tokenizer"] = {{"type", "Whitespace"}}; }, kUnsupported,
                   "pre_tokenizer.type is \"Whitespace\"");
}

TEST(TokenizerErrorsTest, OtherStagesAreRefusedByName) {
  const auto expect = [](const std::function<void(Json&)>& change, const std::string& part) {
    ExpectErrorAfter([&](Json& j) { change(j["pre_tokenizer"]["pretokenizers"]); }, kUnsupported,
                     part);
  };
  expect([](Json& p) { p[0]["pattern"]["Regex"] = R"(\p{N}{1,2})"; },
         R"(pretokenizers[0].pattern.Regex is "\\p{N}{1,2}")");
  expect([](Json& p) { p[1]["pattern"] = {{"String", " "}}; }, "pretokenizers[1].pattern is");
  expect([](Json& p) { p[1].erase("pattern"); }, "pretokenizers[1].pattern is null");
  expect([](Json& p) { p[1]["pattern"]["Regex"] = 3; }, "pretokenizers[1].pattern is");
  expect([](Json& p) { p[2]["behavior"] = "Removed"; }, "pretokenizers[2].behavior is \"Removed\"");
  expect([](Json& p) { p[2]["invert"] = true; }, "pretokenizers[2].invert is true");
  expect([](Json& p) { p[3]["add_prefix_space"] = true; }, "pretokenizers[3].add_prefix_space");
  expect([](Json& p) { p[3].erase("use_regex"); }, "pretokenizers[3].use_regex is null");
}

TEST(TokenizerErrorsTest, ContradictoryVocabulariesAreRefused) {
  const auto expect = [](const std::function<void(Json&)>& change, const std::string& part_one,
                         const std::string& part_two = "") {
    ExpectErrorAfter([&](Json& j) { change(j["model"]["vocab"]); }, kDataLoss, part_one, part_two);
  };
  expect([](Json& v) { v = Json::array(); }, "model.vocab is []", "object");
  expect([](Json& v) { v = 7; }, "model.vocab is 7");
  expect([](Json& v) { v["ab"] = "256"; }, "token \"ab\" has \"256\"", "[0, 16777216)");
  expect([](Json& v) { v["ab"] = -1; }, "token \"ab\" has the id -1");
  expect([](Json& v) { v["ab"] = 1.5; }, "token \"ab\" has 1.5");
  expect([](Json& v) { v["ab"] = 1 << 24; }, "token \"ab\" has the id 16777216");
  expect([](Json& v) { v["ab"] = UINT64_MAX; }, "token \"ab\" has the id 18446744073709551615");
  expect([](Json& v) { v["ab"] = nullptr; }, "token \"ab\" has null");
  expect([](Json& v) { v["ab"] = Json::array({1}); }, "token \"ab\" has an array");
  expect([](Json& v) { v["ab"] = Json::object(); }, "token \"ab\" has an object");
  expect([](Json& v) { v["xy"] = 256; }, "id 256 belongs to");
  expect([](Json& v) { v["中"] = 299; }, "\"中\" (id 299)", "byte alphabet");
  expect([](Json& v) { v[""] = 299; }, "id 299", "empty");
  expect([](Json& v) { v.erase("Ġ"); }, "no token \"Ġ\" for the byte 0x20");
  std::string repeated = TinyTokenizerJson(kMerges).dump();
  repeated.replace(repeated.find("\"vocab\":{"), 9, "\"vocab\":{\"ab\":298,");
  ExpectError(repeated, kDataLoss, "model.vocab repeats \"ab\"");
}

TEST(TokenizerErrorsTest, MergesOutsideTheVocabularyAreRefused) {
  const auto expect = [](const std::function<void(Json&)>& change, const std::string& part_one,
                         const std::string& part_two = "") {
    ExpectErrorAfter([&](Json& j) { change(j["model"]["merges"]); }, kDataLoss, part_one, part_two);
  };
  expect([](Json& m) { m = Json::object(); }, "model.merges is {}", "array");
  expect(
      [](Json& m) {
        m = nullptr;
        m = "x";
      },
      "model.merges is \"x\"");
  expect([](Json& m) { m[1] = {"zz", "c"}; }, "model.merges[1] names \"zz\"");
  expect([](Json& m) { m[1] = {"a", "zz"}; }, "model.merges[1] names \"zz\"");
  expect([](Json& m) { m[1] = {"a", "c"}; }, "model.merges[1] names \"ac\"");
  expect([](Json& m) { m[1] = {"a", "中"}; }, "model.merges[1] names \"中\"");
  expect([](Json& m) { m[1] = "a zz"; }, "model.merges[1] names \"zz\"");
  expect([](Json& m) { m[1] = "ab"; }, "model.merges[1] is \"ab\"", "one space");
  expect([](Json& m) { m[1] = "a b c"; }, "model.merges[1] is \"a b c\"", "one space");
  expect([](Json& m) { m[1] = 3; }, "model.merges[1]", "3");
  expect([](Json& m) { m[1] = Json::object(); }, "model.merges[1]", "an object");
  expect([](Json& m) { m[1] = {"a"}; }, "model.merges[1] has fewer than two parts");
  expect([](Json& m) { m[1] = {"a", "b", "c"}; }, "model.merges[1] has more than two parts");
  expect([](Json& m) { m[1] = {"a", 3}; }, "model.merges[1]", "3");
  expect([](Json& m) { m[1] = {"a", Json::array()}; }, "model.merges[1]", "an array");
  ExpectErrorAfter([](Json& j) { j["model"].erase("merges"); }, kDataLoss,
                   "model.merges is missing");
}

TEST(TokenizerErrorsTest, ContradictoryAddedTokensAreRefused) {
  const auto expect = [](const Json& added, ErrorCode code, const std::string& part_one,
                         const std::string& part_two = "") {
    ExpectErrorAfter([&](Json& j) { j["added_tokens"] = added; }, code, part_one, part_two);
  };
  const auto one = [](const std::function<void(Json&)>& change) {
    Json token = AddedTokenJson(300, "<x>", true);
    change(token);
    return Json::array({token});
  };
  expect(5, kDataLoss, "added_tokens is 5");
  expect(Json::array({5}), kDataLoss, "added_tokens[0] is 5");
  expect(one([](Json& t) { t["content"] = ""; }), kDataLoss, "added_tokens[0].content is \"\"");
  expect(one([](Json& t) { t.erase("content"); }), kDataLoss, "added_tokens[0].content is null");
  expect(one([](Json& t) { t["id"] = -3; }), kDataLoss, "added_tokens[0].id is -3");
  expect(one([](Json& t) { t["id"] = 1 << 24; }), kDataLoss, "added_tokens[0].id is 16777216");
  expect(one([](Json& t) { t["id"] = UINT64_MAX; }), kDataLoss, "added_tokens[0].id is 18446744");
  expect(one([](Json& t) { t["id"] = "3"; }), kDataLoss, "added_tokens[0].id is \"3\"");
  expect(one([](Json& t) { t.erase("special"); }), kDataLoss, "added_tokens[0].special is null");
  expect(one([](Json& t) { t["normalized"] = 1; }), kDataLoss, "added_tokens[0].normalized is 1");
  expect(one([](Json& t) { t["lstrip"] = true; }), kUnsupported, "added_tokens[0].lstrip is true");
  expect(one([](Json& t) { t["rstrip"] = true; }), kUnsupported, "added_tokens[0].rstrip is true");
  expect(one([](Json& t) { t["single_word"] = true; }), kUnsupported, "single_word is true");
  expect(one([](Json& t) { t["id"] = 'a'; }), kDataLoss, "id 97 belongs to \"a\" and to \"<x>\"");
  expect(one([](Json& t) { t["content"] = "ab"; }), kDataLoss, "\"ab\" has id 256", "300");
  expect(one([](Json& t) { t["content"] = "éé"; }), kUnsupported, "\"éé\"", "byte alphabet");
  expect(Json::array({AddedTokenJson(300, "<x>", true), AddedTokenJson(301, "<x>", true)}),
         kDataLoss, "added_tokens repeats \"<x>\"");
  expect(Json::array({AddedTokenJson(300, "<x>", true), AddedTokenJson(300, "<y>", true)}),
         kDataLoss, "id 300 belongs to \"<x>\" and to \"<y>\"");
}

TEST(TokenizerErrorsTest, LongNamesAreCutInMessages) {
  const auto tokenizer = Tokenizer::FromJson([] {
    Json json = TinyTokenizerJson(kMerges);
    json["normalizer"] = std::string(100000, 'x');
    json["model"]["vocab"][std::string(100000, 'y')] = 300;
    return json.dump();
  }());
  ASSERT_FALSE(tokenizer);
  EXPECT_LT(tokenizer.error().message.size(), 1000u);
}

}  // namespace
}  // namespace deepinfer
