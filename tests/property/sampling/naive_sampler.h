// docs/sampling.md restated without any regard for speed: every token is sorted, every noise is
// evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/math.h"
#include "sampling/elementary.h"
#include "sampling/random_stream.h"
#include "sampling/sampler.h"

namespace deepinfer {

struct NaiveResult {
  int32_t token = -1;  // -1: nothing can be drawn
  TokenLogprobs raw, processed;
  std::vector<float> log_p;
};

class NaiveSampler {
 public:
  NaiveSampler(const SampleRow& row, const SamplingParams& params,
               const std::vector<int32_t>& prompt, const std::vector<int32_t>& output)
      : row_(row), params_(params), z_(row.logits.begin(), row.logits.end()) {
    Process(prompt, output);
  }

  NaiveResult Run() const {
    NaiveResult out;
    std::vector<int32_t> order = Order(z_);
    if (order.empty()) return out;
    const double inverse = params_.temperature == 0 ? 1 : std::min(1 / params_.temperature, 1e300);
    const double max = z_[static_cast<size_t>(order[0])];
    if (params_.temperature > 0) order = Filter(order, max, inverse);
    out.token = order[0];
    if (params_.temperature > 0) out.token = Draw(order, max, inverse);
    const std::vector<float> raw(row_.logits.begin(), row_.logits.end());
    const std::vector<int32_t> raw_order = Order(raw);
    out.raw = Logprobs(raw, raw_order, raw[static_cast<size_t>(raw_order[0])], 1, out.token);
    out.processed = Logprobs(z_, order, max, inverse, out.token);
    out.log_p.assign(z_.size(), -std::numeric_limits<float>::infinity());
    if (params_.temperature == 0) {
      out.log_p[static_cast<size_t>(out.token)] = 0;
    } else {
      const double log_total = LogTotal(z_, order, max, inverse);
      for (const int32_t token : order) {
        const double x = (double{z_[static_cast<size_t>(token)]} - max) * inverse;
        out.log_p[static_cast<size_t>(token)] = static_cast<float>(x - log_total);
      }
    }
    return out;
  }

 private:
  static uint64_t Mass(double x) {
    return static_cast<uint64_t>(std::nearbyint(double{Exp(static_cast<float>(x))} * 0x1p40));
  }

  void Process(const std::vector<int32_t>& prompt, const std::vector<int32_t>& output) {
    const auto has = [](const auto& list, int32_t id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    const bool holds_back = static_cast<int64_t>(output.size()) < params_.min_tokens;
    for (size_t i = 0; i < z_.size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      float& z = z_[i];
      const float never = -std::numeric_limits<float>::infinity();
      if (!params_.allowed_token_ids.empty() && !has(params_.allowed_token_ids, id)) z = never;
      if (has(params_.bad_token_ids, id)) z = never;
      for (const LogitBias& entry : params_.logit_bias) {
        if (entry.token == id) z += static_cast<float>(entry.bias);
      }
      if (holds_back && (id == row_.eos_token || has(params_.stop_token_ids, id))) z = never;
      if (!row_.grammar_mask.empty() && (row_.grammar_mask[i / 32] >> (i % 32) & 1u) == 0) {
        z = never;
      }
      const auto count = std::count(output.begin(), output.end(), id);
      if (count > 0 || has(prompt, id)) {
        const float r = static_cast<float>(params_.repetition_penalty);
        z = z > 0 ? z / r : z * r;
      }
      if (count > 0) {
        z -= static_cast<float>(params_.frequency_penalty) * static_cast<float>(count);
        z -= static_cast<float>(params_.presence_penalty);
      }
    }
  }

  // Every finite token, best first.
  static std::vector<int32_t> Order(const std::vector<float>& z) {
    std::vector<int32_t> order;
    for (size_t i = 0; i < z.size(); ++i) {
      if (std::isfinite(z[i])) order.push_back(static_cast<int32_t>(i));
    }
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const float za = z[static_cast<size_t>(a)], zb = z[static_cast<size_t>(b)];
      return za == zb ? a < b : za > zb;
    });
    return order;
  }

  std::vector<int32_t> Filter(std::vector<int32_t> order, double max, double inverse) const {
    const auto scaled = [&](int32_t id) {
      return (double{z_[static_cast<size_t>(id)]} - max) * inverse;
    };
    if (params_.min_p > 0) {
      std::erase_if(order, [&](int32_t id) { return scaled(id) < LogDouble(params_.min_p); });
    }
    if (params_.top_k > 0 && order.size() > static_cast<size_t>(params_.top_k)) {
      order.resize(static_cast<size_t>(params_.top_k));
    }
    if (params_.top_p >= 1) return order;
    uint64_t total = 0;
    for (const int32_t id : order) total += Mass(scaled(id));
    const uint64_t limit = static_cast<uint64_t>(params_.top_p * static_cast<double>(total));
    uint64_t before = 0;
    size_t kept = 0;
    while (kept < order.size() && before <= limit) before += Mass(scaled(order[kept++]));
    order.resize(kept);
    return order;
  }

  int32_t Draw(std::vector<int32_t> order, double max, double inverse) const {
    std::sort(order.begin(), order.end());
    const RandomStream stream(params_.seq_seed, row_.position, row_.stream);
    int32_t best = -1;
    double best_score = -std::numeric_limits<double>::infinity();
    for (const int32_t id : order) {
      const double score =
          (double{z_[static_cast<size_t>(id)]} - max) * inverse + stream.Gumbel(id);
      if (score > best_score) {
        best_score = score;
        best = id;
      }
    }
    return best;
  }

  static double LogTotal(const std::vector<float>& z, const std::vector<int32_t>& order, double max,
                         double inverse) {
    uint64_t total = 0;
    for (const int32_t id : order)
      total += Mass((double{z[static_cast<size_t>(id)]} - max) * inverse);
    return LogDouble(static_cast<double>(total) * 0x1p-40);
  }

  TokenLogprobs Logprobs(const std::vector<float>& z, const std::vector<int32_t>& order, double max,
                         double inverse, int32_t chosen) const {
    const double log_total = LogTotal(z, order, max, inverse);
    TokenLogprobs out;
    const size_t top = static_cast<size_t>(params_.logprobs.value_or(0));
    for (size_t rank = 0; rank < order.size(); ++rank) {
      const double x = (double{z[static_cast<size_t>(order[rank])]} - max) * inverse;
      const TokenLogprob entry{order[rank], static_cast<float>(x - log_total)};
      if (rank < top) out.top.push_back(entry);
      if (entry.token != chosen) continue;
      out.chosen = entry;
      out.rank = static_cast<int64_t>(rank) + 1;
    }
    return out;
  }

  const SampleRow& row_;
  const SamplingParams& params_;
  std::vector<float> z_;
};

}  // namespace deepinfer
