#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/byte_pair_encoder.h"
#include "tokenizer/bytes_index.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

enum class WordKind : uint8_t { kUnknown, kOneToken };

}  // namespace

struct Tokenizer::State {
  BytesIndex bytes;                  // what ids stand for
  std::vector<int32_t> id_of_bytes;  // by index in `bytes`
  std::vector<int32_t> bytes_of_id;  // index in `bytes`, or -1: no token
  std::vector<uint8_t> flags_of_id;  // kAdded, kSpecial
  std::vector<SplitRule> stages;
  BytePairEncoder encoder;
  // Added tokens are matched in two passes, as Hugging Face does: first those that would be matched
  // before normalisation, then in the remaining text the others.
  AddedTokenMatcher unnormalized;
  AddedTokenMatcher normalized;
  // By index in `bytes`: whether merging these bytes gives their one token, once somebody knows.
  // Most words of most texts are such tokens, and looking one up is cheaper than merging it. Every
  // thread that writes an entry writes the same, so the order of accesses does not matter.
  mutable std::vector<std::atomic<WordKind>> word_kinds{static_cast<size_t>(bytes.size())};

  void EncodeOrdinary(std::string_view text, std::vector<int32_t>& ids) const {
    ForEachPiece(stages, text, [&](std::string_view piece) { EncodePiece(piece, ids); });
  }

  void EncodePiece(std::string_view piece, std::vector<int32_t>& ids) const {
    const auto index = bytes.Find(piece);
    if (!index) return encoder.Encode(piece, ids);
    const int32_t id = id_of_bytes[static_cast<size_t>(*index)];
    auto& kind = word_kinds[static_cast<size_t>(*index)];
    if (kind.load(std::memory_order_relaxed) == WordKind::kOneToken) return ids.push_back(id);
    const size_t before = ids.size();
    encoder.Encode(piece, ids);
    const bool is_one = ids.size() == before + 1 && ids.back() == id;
    if (is_one) kind.store(WordKind::kOneToken, std::memory_order_relaxed);
  }
};

namespace {

constexpr uint8_t kAdded = 1;
constexpr uint8_t kSpecial = 2;

using AddedToken = TokenizerFile::AddedToken;
using AddedByContent = std::unordered_map<std::string_view, const AddedToken*>;

// Resolves the names of a TokenizerFile. `bytes_of_id` holds -1 for ids not yet taken.
class TokenTable {
 public:
  explicit TokenTable(const TokenizerFile& file) : bytes(file.vocab.size()) {
    int32_t max_id = -1;
    for (const auto& entry : file.vocab) max_id = std::max(max_id, entry.id);
    for (const auto& token : file.added_tokens) max_id = std::max(max_id, token.id);
    bytes_of_id.assign(static_cast<size_t>(max_id) + 1, -1);
    flags_of_id.assign(static_cast<size_t>(max_id) + 1, 0);
    id_of_bytes.reserve(file.vocab.size());
  }

  // The vocabulary, without the entries that are spelled outside the byte alphabet: those must be
  // added tokens.
  Status AddVocab(const TokenizerFile& file, const AddedByContent& added);
  Status AddAddedTokens(const TokenizerFile& file);
  Result<std::array<int32_t, 256>> ByteTokens() const;
  Result<std::vector<MergeRule>> ResolveMerges(const TokenizerFile& file) const;

  BytesIndex bytes;
  std::vector<int32_t> id_of_bytes;
  std::vector<int32_t> bytes_of_id;
  std::vector<uint8_t> flags_of_id;

 private:
  Result<int32_t> FindSpelling(const std::string& spelling, size_t merge) const;
  tl::unexpected<Error> IdTaken(int32_t id, std::string_view content) const {
    return MakeError(ErrorCode::kDataLoss, "tokenizer.json: id {} belongs to {} and to {}", id,
                     QuotedExcerpt(bytes.Key(bytes_of_id[static_cast<size_t>(id)])),
                     QuotedExcerpt(content));
  }
};

Status TokenTable::AddVocab(const TokenizerFile& file, const AddedByContent& added) {
  for (const auto& entry : file.vocab) {
    const auto it = added.find(entry.spelling);
    if (it != added.end() && it->second->id != entry.id) {
      return MakeError(ErrorCode::kDataLoss,
                       "tokenizer.json: {} has id {} in model.vocab and {} in added_tokens",
                       QuotedExcerpt(entry.spelling), entry.id, it->second->id);
    }
    const auto spelled = BytesOfSpelling(entry.spelling);
    if (!spelled && it != added.end()) continue;
    if (!spelled || spelled->empty()) {
      return MakeError(
          ErrorCode::kDataLoss, "tokenizer.json: model.vocab: {} (id {}) is {}",
          QuotedExcerpt(entry.spelling), entry.id,
          spelled ? "empty" : "neither spelled in the byte alphabet nor an added token");
    }
    int32_t& slot = bytes_of_id[static_cast<size_t>(entry.id)];
    if (slot >= 0) return IdTaken(entry.id, *spelled);
    const auto insertion = bytes.Insert(*spelled);
    if (!insertion.is_new) {
      return MakeError(ErrorCode::kDataLoss, "tokenizer.json: model.vocab repeats {}",
                       QuotedExcerpt(entry.spelling));
    }
    slot = insertion.index;
    id_of_bytes.push_back(entry.id);
  }
  return {};
}

Status TokenTable::AddAddedTokens(const TokenizerFile& file) {
  for (const AddedToken& token : file.added_tokens) {
    const auto spelled = BytesOfSpelling(token.content);
    if (spelled && *spelled != token.content) {
      return MakeError(ErrorCode::kUnsupported,
                       "tokenizer.json: added token {} (id {}) is spelled in the byte alphabet: it "
                       "would not decode to its own text",
                       QuotedExcerpt(token.content), token.id);
    }
    int32_t& slot = bytes_of_id[static_cast<size_t>(token.id)];
    if (slot >= 0 && bytes.Key(slot) != token.content) return IdTaken(token.id, token.content);
    const auto insertion = bytes.Insert(token.content);
    if (insertion.is_new) {
      id_of_bytes.push_back(token.id);
    } else {
      id_of_bytes[static_cast<size_t>(insertion.index)] = token.id;
    }
    slot = insertion.index;
    flags_of_id[static_cast<size_t>(token.id)] = kAdded | (token.is_special ? kSpecial : 0);
  }
  return {};
}

Result<std::array<int32_t, 256>> TokenTable::ByteTokens() const {
  std::array<int32_t, 256> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto index = bytes.Find({&c, 1});
    if (!index) {
      return MakeError(ErrorCode::kDataLoss,
                       "tokenizer.json: model.vocab has no token {} for the byte {:#04x}",
                       QuotedExcerpt(SpellingOfBytes({&c, 1})), byte);
    }
    tokens[static_cast<size_t>(byte)] = id_of_bytes[static_cast<size_t>(*index)];
  }
  return tokens;
}

Result<int32_t> TokenTable::FindSpelling(const std::string& spelling, size_t merge) const {
  const auto spelled = BytesOfSpelling(spelling);
  const auto index = spelled ? bytes.Find(*spelled) : std::nullopt;
  if (index) return id_of_bytes[static_cast<size_t>(*index)];
  return MakeError(ErrorCode::kDataLoss,
                   "tokenizer.json: model.merges[{}] names {}, which is not in model.vocab", merge,
                   QuotedExcerpt(spelling));
}

Result<std::vector<MergeRule>> TokenTable::ResolveMerges(const TokenizerFile& file) const {
  if (static_cast<int64_t>(file.merges.size()) >= kMaxTokenIds) {
    return MakeError(ErrorCode::kUnsupported, "tokenizer.json: {} merges; at most {} are supported",
                     file.merges.size(), kMaxTokenIds - 1);
  }
  std::vector<MergeRule> rules;
  rules.reserve(file.merges.size());
  std::string joined;
  for (size_t i = 0; i < file.merges.size(); ++i) {
    const auto& [left_spelling, right_spelling] = file.merges[i];
    DI_ASSIGN_OR_RETURN(const int32_t left, FindSpelling(left_spelling, i));
    DI_ASSIGN_OR_RETURN(const int32_t right, FindSpelling(right_spelling, i));
    joined.assign(left_spelling).append(right_spelling);
    DI_ASSIGN_OR_RETURN(const int32_t merged, FindSpelling(joined, i));
    rules.push_back({left, right, merged});
  }
  return rules;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<Tokenizer> Tokenizer::FromJson(std::string_view json) {
  DI_ASSIGN_OR_RETURN(const TokenizerFile file, ReadTokenizerFile(json));
  AddedByContent added;
  for (const AddedToken& token : file.added_tokens) {
    const auto [it, is_new] = added.emplace(token.content, &token);
    if (!is_new) {
      return MakeError(ErrorCode::kDataLoss, "tokenizer.json: added_tokens repeats {} (ids {}, {})",
                       QuotedExcerpt(token.content), it->second->id, token.id);
    }
  }
  TokenTable table(file);
  DI_RETURN_IF_ERROR(table.AddVocab(file, added));
  DI_ASSIGN_OR_RETURN(const auto byte_tokens, table.ByteTokens());
  DI_ASSIGN_OR_RETURN(const auto rules, table.ResolveMerges(file));
  DI_RETURN_IF_ERROR(table.AddAddedTokens(file));

  auto state = std::make_shared<State>(State{std::move(table.bytes),
                                             std::move(table.id_of_bytes),
                                             std::move(table.bytes_of_id),
                                             std::move(table.flags_of_id),
                                             file.stages,
                                             BytePairEncoder(byte_tokens, rules),
                                             {},
                                             {}});
  for (const AddedToken& token : file.added_tokens) {
    (token.is_normalized ? state->normalized : state->unnormalized).Add(token.content, token.id);
  }
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::FromFile(const std::filesystem::path& path) {
  DI_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const auto bytes = file.bytes();
  auto tokenizer = FromJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (tokenizer) return tokenizer;
  // Of a text the errors call the file by its usual name; here its path says it.
  constexpr std::string_view kUsualName = "tokenizer.json: ";
  Error error = std::move(tokenizer).error();
  if (error.message.starts_with(kUsualName)) error.message.erase(0, kUsualName.size());
  return Forward(std::move(error), path.string());
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, SpecialTokens specials) const {
  std::vector<int32_t> ids;
  Encode(text, specials, ids);
  return ids;
}

void Tokenizer::Encode(std::string_view text, SpecialTokens specials,
                       std::vector<int32_t>& ids) const {
  const auto encode_text = [&](std::string_view part) { state_->EncodeOrdinary(part, ids); };
  if (specials == SpecialTokens::kAsText) return encode_text(text);
  const auto put_token = [&](int32_t id) { ids.push_back(id); };
  const auto second_pass = [&](std::string_view part) {
    state_->normalized.Split(part, encode_text, put_token);
  };
  state_->unnormalized.Split(text, second_pass, put_token);
}

std::string Tokenizer::DecodeBytes(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes.append(TokenBytes(id));
  return bytes;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  return RepairUtf8(DecodeBytes(ids));
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const int32_t index = state_->bytes_of_id[static_cast<size_t>(id)];
  return index < 0 ? std::string_view() : state_->bytes.Key(index);
}

std::optional<int32_t> Tokenizer::FindToken(std::string_view content) const {
  const auto index = state_->bytes.Find(content);
  if (!index) return std::nullopt;
  return state_->id_of_bytes[static_cast<size_t>(*index)];
}

bool Tokenizer::IsAdded(int32_t id) const {
  return id >= 0 && id < vocab_size() && (state_->flags_of_id[static_cast<size_t>(id)] & kAdded);
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && id < vocab_size() && (state_->flags_of_id[static_cast<size_t>(id)] & kSpecial);
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(state_->bytes_of_id.size()); }

}  // namespace deepinfer
