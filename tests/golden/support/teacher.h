// Teacher forcing: every block starts from the captured state, so that differences do not pile up.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "model/v41/model.h"
#include "tests/golden/support/golden_file.h"

namespace deepinfer::golden {

class Teacher final : public model::v41::ForwardProbe {
 public:
  // `prompt_tokens`: length of the captured prompt. `force`: replace inputs by captured ones.
  Teacher(const GoldenFile& capture, int64_t prompt_tokens, bool force = true)
      : capture_(capture), prompt_tokens_(prompt_tokens), force_(force) {}

  void OnTensor(std::string_view name, const TensorView& value, std::byte* bytes) override {
    const std::string key(name);
    if (!capture_.Has(key)) return;
    const TensorView& want = capture_.View(key);
    seen_.insert(key);
    const std::string leaf = key.substr(key.rfind('.') + 1);
    if (want.shape != value.shape || want.dtype != value.dtype) {
      misfits_.insert(key);
      return;
    }
    std::vector<double> got = Values(value), expected = Values(want);
    if (leaf == "expert_ids") SortRows(got, expected, value.shape.back());
    Difference& sum = leaves_[leaf];
    const Difference d = Compare(got, expected);
    sum.count += d.count;
    sum.differing += d.differing;
    sum.max_abs = std::max(sum.max_abs, d.max_abs);
    sum.rms_relative = std::max(sum.rms_relative, d.rms_relative);
    if (force_ && kInputs.count(leaf) != 0) std::memcpy(bytes, want.data, want.bytes());
  }

  int64_t WindowSlots(int64_t window) override { return std::min(window, prompt_tokens_); }

  const std::map<std::string, Difference>& leaves() const { return leaves_; }
  const std::set<std::string>& seen() const { return seen_; }
  const std::set<std::string>& misfits() const { return misfits_; }

 private:
  // What a block starts from.
  inline static const std::set<std::string> kInputs = {"x_in",      "pre_in", "engram_in",
                                                       "topk_idxs", "x_out",  "pre_out"};

  static void SortRows(std::vector<double>& a, std::vector<double>& b, int64_t width) {
    for (size_t i = 0; i < a.size(); i += width) {
      std::sort(a.begin() + i, a.begin() + i + width);
      std::sort(b.begin() + i, b.begin() + i + width);
    }
  }

  const GoldenFile& capture_;
  const int64_t prompt_tokens_;
  const bool force_;
  std::map<std::string, Difference> leaves_;
  std::set<std::string> seen_, misfits_;
};

}  // namespace deepinfer::golden
