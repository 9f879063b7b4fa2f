#include "loader/model_resolver.h"

#include <gmock/gmock.h>

#include <map>

#include "base/file.h"
#include "tests/unit/loader/hub_test_repository.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ModelResolverTest : public ::testing::Test {
 protected:
  ModelResolverTest() {
    query_.environment = [this](std::string_view name) -> std::optional<std::string> {
      const auto found = variables_.find(std::string(name));
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    variables_["HF_HUB_CACHE"] = (root_ / "hub").string();
    query_.executable_folder = root_ / "source" / "build" / "release";
    query_.current_folder = root_ / "elsewhere";
  }

  static void Write(const fs::path& path, const std::string& contents = "x") {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, contents));
  }

  static void MakeCheckpointFolder(const fs::path& folder) {
    Write(folder / "config.json", "{}");
    Write(folder / "tokenizer.json", "{}");
    Write(folder / "model.safetensors.index.json",
          R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"one.safetensors"}})");
    Write(folder / "one.safetensors");
    Write(folder / "two.safetensors");
  }

  fs::path MakeCached(const std::string& id) {
    const HubRepository repository{root_ / "hub", id};
    const fs::path snapshot = repository.snapshot(kTestCommit);
    MakeCheckpointFolder(snapshot);
    Write(repository.reference("main"), kTestCommit);
    return snapshot;
  }

  fs::path Expect(const std::string& reason) {
    const auto resolved = ResolveModel(query_);
    EXPECT_TRUE(resolved) << resolved.error().message;
    if (!resolved) return {};
    EXPECT_THAT(resolved->reason, HasSubstr(reason));
    return resolved->folder;
  }

  std::string ExpectError(ErrorCode code) {
    const auto resolved = ResolveModel(query_);
    EXPECT_FALSE(resolved) << resolved->folder;
    if (resolved) return {};
    EXPECT_EQ(resolved.error().code, code) << resolved.error().message;
    return resolved.error().message;
  }

  ScratchFolder scratch_;
  fs::path root_ = scratch_.path();
  std::map<std::string, std::string> variables_;
  ModelQuery query_;
};

TEST_F(ModelResolverTest, RulesApplyInTheirOrder) {
  MakeCheckpointFolder(root_ / "source" / "models" / "nano");
  EXPECT_EQ(Expect("shipped with DeepInfer"), root_ / "source" / "models" / "nano");

  const fs::path cached = MakeCached("deepseek-ai/DeepSeek-V4.1-Flash-1017");
  EXPECT_EQ(Expect("found in the Hugging Face cache"), cached);

  MakeCheckpointFolder(root_ / "variable");
  variables_["DEEPINFER_HF_MODEL_DIR"] = (root_ / "variable").string();
  EXPECT_EQ(Expect("DEEPINFER_HF_MODEL_DIR"), root_ / "variable");

  MakeCheckpointFolder(root_ / "argument");
  query_.model = (root_ / "argument").string();
  EXPECT_EQ(Expect("--model"), root_ / "argument");
}

TEST_F(ModelResolverTest, AnUnusableVariableIsAnErrorAndNotSkipped) {
  MakeCheckpointFolder(root_ / "source" / "models" / "nano");
  variables_["DEEPINFER_HF_MODEL_DIR"] = (root_ / "absent").string();
  const std::string message = ExpectError(ErrorCode::kNotFound);
  EXPECT_THAT(message, HasSubstr("DEEPINFER_HF_MODEL_DIR"));
  EXPECT_THAT(message, HasSubstr("absent does not exist"));
}

TEST_F(ModelResolverTest, AnotherArchitectureIsNamedBeforeTheFilesItLacks) {
  Write(root_ / "other" / "config.json", R"({"architectures": ["OtherForCausalLM"]})");
  query_.model = (root_ / "other").string();
  EXPECT_THAT(ExpectError(ErrorCode::kUnsupported), HasSubstr("OtherForCausalLM"));
  query_.needs_weights = false;
  EXPECT_EQ(Expect("--model"), root_ / "other");
}

TEST_F(ModelResolverTest, RepositoryIdsAreLookedUpInTheCache) {
  const fs::path cached = MakeCached("some-org/some.model");
  query_.model = "some-org/some.model";
  EXPECT_EQ(Expect("--model some-org/some.model"), cached);
  query_.model = "some-org/other";
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("is not in the Hugging Face cache"));
  query_.model = "../some";
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("neither an existing folder"));
}

TEST_F(ModelResolverTest, ARepositoryFolderStandsForItsSnapshot) {
  const fs::path cached = MakeCached("some-org/model");
  query_.model = HubRepository{root_ / "hub", "some-org/model"}.folder().string();
  EXPECT_EQ(Expect("--model"), cached);
}

TEST_F(ModelResolverTest, AFileIsNotACheckpoint) {
  Write(root_ / "weights.gguf");
  query_.model = (root_ / "weights.gguf").string();
  EXPECT_THAT(ExpectError(ErrorCode::kInvalidArgument), HasSubstr("is a file"));
}

TEST_F(ModelResolverTest, MissingPartsAreNamed) {
  const fs::path folder = root_ / "model";
  query_.model = folder.string();
  fs::create_directories(folder);
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("no config.json"));
  MakeCheckpointFolder(folder);
  fs::remove(folder / "two.safetensors");
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound),
              HasSubstr("1 of 2 weight files are missing, first two.safetensors"));
  Write(folder / "two.safetensors");
  fs::remove(folder / "tokenizer.json");
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("no tokenizer.json"));
  fs::remove(folder / "model.safetensors.index.json");
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("neither model.safetensors nor"));
  query_.needs_weights = false;
  EXPECT_EQ(Expect("--model"), folder);
}

TEST_F(ModelResolverTest, ABrokenIndexIsAnError) {
  const fs::path folder = root_ / "model";
  MakeCheckpointFolder(folder);
  query_.model = folder.string();
  for (const std::string text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})"}) {
    Write(folder / "model.safetensors.index.json", text);
    EXPECT_THAT(ExpectError(ErrorCode::kDataLoss), HasSubstr("model.safetensors.index.json"));
  }
}

TEST_F(ModelResolverTest, AnUnfinishedDownloadIsReportedInsteadOfTheShippedModel) {
  MakeCheckpointFolder(root_ / "source" / "models" / "nano");
  const fs::path cached = MakeCached(std::string(kDefaultRepository));
  const fs::path reference =
      HubRepository{root_ / "hub", std::string(kDefaultRepository)}.reference("main");
  fs::remove(reference);
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("did not finish"));
  Write(reference, kTestCommit + "\n");
  EXPECT_EQ(Expect("cache"), cached);
  fs::remove(cached / "one.safetensors");
  fs::create_symlink("../../blobs/gone", cached / "one.safetensors");  // dangling
  EXPECT_THAT(ExpectError(ErrorCode::kNotFound), HasSubstr("--model"));
  Write(reference, "../../..");
  EXPECT_THAT(ExpectError(ErrorCode::kDataLoss), HasSubstr("does not name a snapshot"));
}

TEST_F(ModelResolverTest, TheShippedModelIsFoundInstalledAndFromTheCurrentFolder) {
  MakeCheckpointFolder(root_ / "elsewhere" / "models" / "nano");
  EXPECT_EQ(Expect("shipped"), root_ / "elsewhere" / "models" / "nano");
  query_.executable_folder = root_ / "usr" / "bin";
  const fs::path share = root_ / "usr" / "share" / "deepinfer" / "models" / "nano";
  MakeCheckpointFolder(share);
  EXPECT_EQ(Expect("shipped"), share);
}

TEST_F(ModelResolverTest, NothingAtAllSaysWhatToDo) {
  const std::string message = ExpectError(ErrorCode::kNotFound);
  EXPECT_THAT(message, HasSubstr("--model"));
  EXPECT_THAT(message, HasSubstr("DEEPINFER_HF_MODEL_DIR"));
}

TEST_F(ModelResolverTest, CacheVariablesFollowTheHubsOrder) {
  variables_ = {{"HOME", "/h"}};
  EXPECT_EQ(*HubCacheFolder(query_.environment), "/h/.cache/huggingface/hub");
  variables_["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(*HubCacheFolder(query_.environment), "/x/huggingface/hub");
  variables_["HF_HOME"] = "/f";
  EXPECT_EQ(*HubCacheFolder(query_.environment), "/f/hub");
  variables_["HF_HUB_CACHE"] = "/c";
  EXPECT_EQ(*HubCacheFolder(query_.environment), "/c");
  variables_["HF_HUB_CACHE"] = "";
  EXPECT_EQ(*HubCacheFolder(query_.environment), "/f/hub");
  variables_.clear();
  EXPECT_FALSE(HubCacheFolder(query_.environment));
}

}  // namespace
}  // namespace deepinfer
