#include "engine/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/numeric.h"
#include "loader/safetensors.h"

namespace deepinfer {
namespace {

using model::v41::SequenceChunk;

// Tolerance of one kind of tensor.
struct Tolerance {
  double differing;  // share of elements that may differ
  double rms;        // largest relative RMS error
};

Tolerance ToleranceOf(std::string_view leaf) {
  // Quantised values, selections and hashes: every bit.
  for (const char* exact : {"attn_q", "qr", "compress_kv", "index_k", "index_q", "topk_idxs",
                            "expert_ids", "engram_hash_ids", "engram_rows"}) {
    if (leaf == exact) return {0, 0};
  }
  // Sublayer outputs: bf16 after long sums over quantised intermediates.
  if (leaf == "attn_out" || leaf == "attn_o") return {0.02, 0.003};
  if (leaf == "ffn_out") return {0.02, 0.02};
  // fp32 coefficients and scores: any element may be a rounding off.
  for (const char* wide : {"attn_pre", "attn_post", "attn_comb", "ffn_pre", "ffn_post", "ffn_comb",
                           "pre_in", "pre_out", "gate_scores", "expert_weights", "index_score"}) {
    if (leaf == wide) return {1, 0.003};
  }
  return {0.006, 0.003};
}

// Blocks start from these.
bool IsInput(std::string_view leaf) {
  for (const char* input : {"x_in", "pre_in", "engram_in", "topk_idxs", "x_out", "pre_out"}) {
    if (leaf == input) return true;
  }
  return false;
}

double Element(const TensorView& view, int64_t i) {
  const std::byte* p = view.data + i * static_cast<int64_t>(DTypeBytes(view.dtype));
  const auto load = [p](auto value) {
    std::memcpy(&value, p, sizeof(value));
    return value;
  };
  switch (view.dtype) {
    case DType::kBF16:
      return ToFloat(bf16{load(uint16_t{})});
    case DType::kF32:
      return load(float{});
    case DType::kI32:
      return load(int32_t{});
    case DType::kI64:
      return static_cast<double>(load(int64_t{}));
    default:
      return load(uint8_t{});
  }
}

std::vector<double> Elements(const TensorView& view, bool sort_rows) {
  std::vector<double> out(view.elements());
  for (int64_t i = 0; i < std::ssize(out); ++i) out[i] = Element(view, i);
  for (auto row = out.begin(); sort_rows && row != out.end(); row += view.shape.back()) {
    std::sort(row, row + view.shape.back());
  }
  return out;
}

void Measure(const TensorView& got_view, const TensorView& want_view, bool sort_rows,
             TensorComparison& out) {
  const std::vector<double> got = Elements(got_view, sort_rows);
  const std::vector<double> want = Elements(want_view, sort_rows);
  double error = 0, power = 0;
  bool finite = true;
  for (size_t i = 0; i < want.size(); ++i) {
    out.differing += got[i] != want[i];
    if (!std::isfinite(want[i]) || !std::isfinite(got[i])) {
      finite = finite && got[i] == want[i];
      continue;
    }
    const double difference = std::fabs(got[i] - want[i]);
    out.max_abs = std::max(out.max_abs, difference);
    error += difference * difference;
    power += want[i] * want[i];
  }
  out.elements = want.size();
  out.rms_relative = power > 0 ? std::sqrt(error / power) : std::sqrt(error);
  if (!finite) {
    out.agrees = false;
    out.problem = "an infinite or NaN element differs";
  }
}

void Judge(const Tolerance& tolerance, TensorComparison& out) {
  if (!out.agrees) return;
  const double share = static_cast<double>(out.differing) / static_cast<double>(out.elements);
  if (share > tolerance.differing) {
    out.problem = fmt::format("{:.3g} % of the elements differ, at most {:.3g} % may", 100 * share,
                              100 * tolerance.differing);
  } else if (out.rms_relative > tolerance.rms) {
    out.problem =
        fmt::format("relative RMS error {:.3g}, at most {:.3g}", out.rms_relative, tolerance.rms);
  }
  out.agrees = out.problem.empty();
}

Result<std::vector<int32_t>> Tokens(const TensorView& view, const std::string& what) {
  if (view.dtype != DType::kI32 && view.dtype != DType::kI64) {
    return MakeError(ErrorCode::kDataLoss, "{} is {}; token ids are I32 or I64", what,
                     DTypeName(view.dtype));
  }
  std::vector<int32_t> tokens(view.elements());
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    const double id = Element(view, i);
    if (id < 0 || id > INT32_MAX) {
      return MakeError(ErrorCode::kDataLoss, "{}: token id {} is outside [0, 2^31)", what, id);
    }
    tokens[i] = static_cast<int32_t>(id);
  }
  return tokens;
}

// "p33" of "capture_p33_idx32.safetensors"; empty for other names.
std::string PromptName(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  constexpr std::string_view kPrefix = "capture_";
  if (stem.compare(0, kPrefix.size(), kPrefix) != 0) return "";
  return stem.substr(kPrefix.size(), stem.find('_', kPrefix.size()) - kPrefix.size());
}

Result<std::filesystem::path> DumpFile(const std::filesystem::path& folder,
                                       const std::string& prompt) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string of = PromptName(entry.path());
    if (of.empty() || of == "dspark" || name.find("_idx32.") == std::string::npos) continue;
    if (prompt.empty() || of == prompt) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  if (found.size() == 1) return found.front();
  std::string names;
  for (const auto& file : found) names += " " + PromptName(file);
  return MakeError(ErrorCode::kInvalidArgument, "{}: {} capture_*_idx32.safetensors files{}{}",
                   folder.string(), found.size(), prompt.empty() ? "" : " of prompt " + prompt,
                   found.empty() ? "" : "; choose a prompt:" + names);
}

}  // namespace

DumpComparer::DumpComparer(const SafetensorsFile& dump, int64_t prompt_tokens, bool free_running)
    : prompt_tokens_(prompt_tokens), free_running_(free_running) {
  for (const auto& tensor : dump.tensors()) dump_.emplace(tensor.name, &tensor.view);
}

void DumpComparer::OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) {
  const auto found = dump_.find(name);
  if (found == dump_.end()) return;
  const TensorView& want = *found->second;
  seen_.insert(found->first);
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  TensorComparison& out = report_.tensors.emplace_back();
  out.name = name;
  if (value.dtype != want.dtype || value.shape != want.shape) {
    out.agrees = false;
    out.problem =
        fmt::format("ours is {} {}, the dump's {} {}", DTypeName(value.dtype),
                    ShapeString(value.shape), DTypeName(want.dtype), ShapeString(want.shape));
    return;
  }
  // Equal scores order chosen experts freely; the set counts.
  Measure(value, want, leaf == "expert_ids", out);
  Judge(ToleranceOf(leaf), out);
  if (!free_running_ && IsInput(leaf)) std::memcpy(bytes, want.data, want.bytes());
}

int64_t DumpComparer::WindowSlots(int64_t window) { return std::min(window, prompt_tokens_); }

VerifyReport DumpComparer::TakeReport() {
  for (const auto& [name, view] : dump_) {
    if (seen_.count(name) == 0 && name != "tokens") report_.unused.push_back(name);
  }
  return std::move(report_);
}

const TensorComparison* VerifyReport::first_divergence() const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [](const TensorComparison& t) { return !t.agrees; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<VerifyDump> FindVerifyDump(const std::filesystem::path& path, const std::string& prompt) {
  VerifyDump dump{path, {}};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    DI_ASSIGN_OR_RETURN(dump.file, DumpFile(path, prompt));
  }
  DI_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(dump.file));
  if (const TensorView* tokens = file.Find("tokens")) {
    DI_ASSIGN_OR_RETURN(dump.tokens, Tokens(*tokens, dump.file.string() + ": tokens"));
    return dump;
  }
  const std::string name = prompt.empty() ? PromptName(dump.file) : prompt;
  const std::filesystem::path prompts_path = dump.file.parent_path() / "prompts.safetensors";
  DI_ASSIGN_OR_RETURN(const SafetensorsFile prompts, SafetensorsFile::Open(prompts_path));
  const TensorView* tokens = prompts.Find(name);
  if (tokens == nullptr) {
    return MakeError(ErrorCode::kNotFound, "{} holds no prompt \"{}\" for the dump {}",
                     prompts_path.string(), name, dump.file.string());
  }
  DI_ASSIGN_OR_RETURN(dump.tokens, Tokens(*tokens, prompts_path.string() + ": " + name));
  return dump;
}

Result<VerifyReport> Verify(const model::v41::Model& model, model::v41::ForwardContext& context,
                            const VerifyDump& dump, bool free_running) {
  DI_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(dump.file));
  DumpComparer comparer(file, std::ssize(dump.tokens), free_running);
  // With draft rings, so that the taps are computed too.
  const auto state = model.NewSequence(model.config().num_draft_stages > 0);
  const SequenceChunk chunk{
      .state = state.get(), .tokens = dump.tokens, .logits_rows = std::ssize(dump.tokens)};
  std::vector<float> logits;
  context.probe = &comparer;
  const Status status = model.Forward(context, {&chunk, 1}, logits);
  context.probe = nullptr;
  if (!status) return Forward(status.error());
  VerifyReport report = comparer.TakeReport();
  if (report.tensors.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "{} holds no tensor that a forward produces (such as layers.0.x_in)",
                     dump.file.string());
  }
  return report;
}

}  // namespace deepinfer
