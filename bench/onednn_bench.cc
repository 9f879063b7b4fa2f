// Our products of quantised weights against oneDNN's bf16 matmul on the release's shapes, in turn,
// so that a change of the machine's load meets both. oneDNN has bf16 weights, twice to four times
// the bytes, in the layout that it asks for; reordering them is not timed. Both use as many threads
// (oneDNN by OpenMP, as Debian builds it).
//
// usage: onednn_bench [THREADS [TARGET]]
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/topology.h"
#include "bench/kernel_inputs.h"
#include "bench/timing.h"
#include "kernels/cpu/cpu.h"

namespace deepinfer::bench {
namespace {

using dnnl::memory;

constexpr int kRepetitions = 11;
constexpr double kMinSeconds = 0.02;
// Weights rotate over copies so that no cache holds them between calls.
constexpr int64_t kWeightBytes = int64_t{256} << 20;

enum class Format { kFp8, kFp4, kBf16 };
constexpr const char* kFormatNames[] = {"q8 x fp8", "q8 x fp4", "bf16"};

struct Shape {
  const char* name;
  Format format;
  int64_t n, k;
};
constexpr Shape kShapes[] = {
    {"wq_a", Format::kFp8, 1280, 5120},           {"wq_b", Format::kFp8, 32768, 1280},
    {"wo_b", Format::kFp8, 5120, 8192},           {"shared_w1", Format::kFp8, 2304, 5120},
    {"expert_w1", Format::kFp4, 2304, 5120},      {"expert_w2", Format::kFp4, 5120, 2304},
    {"compressor_wkv", Format::kBf16, 512, 5120},
};

int64_t Copies(int64_t bytes) { return std::clamp<int64_t>(kWeightBytes / bytes, 1, 64); }

// Our product; call Run over and over.
class Ours {
 public:
  Ours(const kernels::KernelTable& table, ThreadPool& pool, const Shape& shape, int64_t m)
      : table_(table), pool_(pool), make_(pool, 1) {
    const int64_t n = shape.n, k = shape.k;
    x_ = make_.Bf16s(m * k);
    codes_ = Buffer<uint8_t>(m * k);
    scales_ = Buffer<uint8_t>(m * k / kernels::kGroup);
    const kernels::RowsView x{x_.data(), m, k, k};
    const kernels::Q8Rows q8{codes_.data(), scales_.data(), m, k};
    table.quantize_q8(pool, x, q8);
    y_ = Buffer<bf16>(m * n);
    const int64_t bytes = shape.format == Format::kFp8   ? n * k
                          : shape.format == Format::kFp4 ? n * k / 2
                                                         : 2 * n * k;
    for (int64_t copy = 0; copy < Copies(bytes); ++copy) {
      switch (shape.format) {
        case Format::kFp8: {
          const uint8_t* w = Keep(make_.E4m3Codes(n * k));
          const uint8_t* s = Keep(make_.E8m0Scales(n / 32 * (k / 32)));
          items_.push_back(kernels::MakeGemm(q8, kernels::Fp8Matrix{w, s, n, k}, y_.data(), n));
          break;
        }
        case Format::kFp4: {
          const uint8_t* w = Keep(make_.E2m1Bytes(n * k / 2));
          const uint8_t* s = Keep(make_.E8m0Scales(n * (k / 32)));
          items_.push_back(kernels::MakeGemm(q8, kernels::Fp4Matrix{w, s, n, k}, y_.data(), n));
          break;
        }
        case Format::kBf16:
          values_.push_back(make_.Bf16s(n * k));
          items_.push_back(
              kernels::MakeGemm(x, kernels::Bf16Matrix{values_.back().data(), n, k}, y_.data(), n));
          break;
      }
    }
  }
  void Run() { table_.Multiply(pool_, items_[next_++ % items_.size()]); }

 private:
  const uint8_t* Keep(Buffer<uint8_t> buffer) {
    weights_.push_back(std::move(buffer));
    return weights_.back().data();
  }

  const kernels::KernelTable& table_;
  ThreadPool& pool_;
  InputMaker make_;
  Buffer<bf16> x_, y_;
  Buffer<uint8_t> codes_, scales_;
  std::vector<Buffer<uint8_t>> weights_;
  std::vector<Buffer<bf16>> values_;
  std::vector<kernels::GemmItem> items_;
  size_t next_ = 0;
};

// y [m, n] = x [m, k] w [k, n], all bf16, sums in fp32. Input and output are plain rows, as the
// model has them; only the weights' layout is oneDNN's.
class Theirs {
 public:
  Theirs(ThreadPool& pool, const Shape& shape, int64_t m)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    constexpr auto kType = memory::data_type::bf16;
    const memory::desc x({m, shape.k}, kType, memory::format_tag::ab);
    const memory::desc any({shape.k, shape.n}, kType, memory::format_tag::any);
    const memory::desc plain({shape.k, shape.n}, kType, memory::format_tag::ba);
    const memory::desc y({m, shape.n}, kType, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, any, y), engine_);
    implementation_ = description.impl_info_str();
    matmul_ = dnnl::matmul(description);
    InputMaker make(pool, 1);
    x_ = make.Bf16s(m * shape.k);
    y_ = Buffer<bf16>(m * shape.n);
    x_memory_ = memory(x, engine_, x_.data());
    y_memory_ = memory(y, engine_, y_.data());
    Buffer<bf16> values = make.Bf16s(shape.n * shape.k);
    memory source(plain, engine_, values.data());
    for (int64_t copy = 0; copy < Copies(2 * shape.n * shape.k); ++copy) {
      weights_.emplace_back(description.weights_desc(), engine_);
      dnnl::reorder(source, weights_.back()).execute(stream_, source, weights_.back());
    }
    stream_.wait();
  }
  void Run() {
    matmul_.execute(stream_, {{DNNL_ARG_SRC, x_memory_},
                              {DNNL_ARG_WEIGHTS, weights_[next_++ % weights_.size()]},
                              {DNNL_ARG_DST, y_memory_}});
    stream_.wait();
  }
  const std::string& implementation() const { return implementation_; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::string implementation_;
  Buffer<bf16> x_, y_;
  memory x_memory_, y_memory_;
  std::vector<memory> weights_;
  size_t next_ = 0;
};

// Seconds of a call, over at least kMinSeconds. The other side's threads still spin for a while
// after its last call: they are given time to sleep, and ours or oneDNN's a call to wake.
template <typename Product>
double Time(Product& product) {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  product.Run();
  const auto start = std::chrono::steady_clock::now();
  int calls = 0;
  do {
    product.Run();
    ++calls;
  } while (SecondsSince(start) < kMinSeconds);
  return SecondsSince(start) / calls;
}

void Compare(const kernels::KernelTable& table, ThreadPool& pool, const Shape& shape, int64_t m) {
  Ours ours(table, pool, shape, m);
  Theirs theirs(pool, shape, m);
  Time(ours);
  Time(theirs);
  std::vector<double> our_seconds, their_seconds, ratios;
  for (int i = 0; i < kRepetitions; ++i) {
    our_seconds.push_back(Time(ours));
    their_seconds.push_back(Time(theirs));
    ratios.push_back(their_seconds.back() / our_seconds.back());
  }
  const Timing a = Summarise(our_seconds), b = Summarise(their_seconds), r = Summarise(ratios);
  const double gflop = 2e-9 * static_cast<double>(m * shape.n * shape.k);
  fmt::print(
      "{:<16} {:<9} {:>4} {:>6} {:>5} {:>11.1f} {:>11.1f} {:>9.1f} {:>9.1f} {:>7.2f} "
      "{:>6.2f} {:>6.2f}  {}\n",
      shape.name, kFormatNames[static_cast<int>(shape.format)], m, shape.n, shape.k, a.median * 1e6,
      b.median * 1e6, gflop / a.median, gflop / b.median, r.median, r.min, r.max,
      theirs.implementation());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : DefaultThreads();
  if (threads < 1 || argc > 3) {
    fmt::print(stderr, "usage: onednn_bench [THREADS [TARGET]]\n");
    return 2;
  }
  const auto table = kernels::cpu::SelectTarget(argc > 2 ? argv[2] : "auto");
  if (!table) {
    fmt::print(stderr, "{}\n", table.error().message);
    return 2;
  }
  omp_set_num_threads(threads);
  ThreadPool pool(threads);
  const dnnl_version_t* version = dnnl_version();
  fmt::print("{} threads; ours: {}; oneDNN {}.{}.{}\n", threads, (*table)->name, version->major,
             version->minor, version->patch);
  fmt::print("{:<16} {:<9} {:>4} {:>6} {:>5} {:>11} {:>11} {:>9} {:>9} {:>7} {:>6} {:>6}  {}\n",
             "matrix", "ours", "m", "n", "k", "ours us", "oneDNN us", "GFLOP/s", "GFLOP/s",
             "speedup", "min", "max", "oneDNN kernel");
  for (const Shape& shape : kShapes) {
    for (const int64_t m : {1, 16, 64, 256}) Compare(**table, pool, shape, m);
  }
  return 0;
}

}  // namespace
}  // namespace deepinfer::bench

int main(int argc, char** argv) { return deepinfer::bench::Main(argc, argv); }
