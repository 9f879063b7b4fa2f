#include "bench/kernel_inputs.h"

#include <algorithm>
#include <vector>

namespace deepinfer::bench {
namespace {

constexpr int64_t kBlock = 1 << 15;

float Uniform(uint64_t bits) {
  return static_cast<float>(static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
}

}  // namespace

template <typename T, typename Make>
Buffer<T> InputMaker::Fill(int64_t count, Make&& make) {
  std::vector<T> block(static_cast<size_t>(std::min(count, kBlock)));
  for (T& value : block) value = make(RandomBits(seed_, counter_++));
  Buffer<T> buffer(count);
  pool_.ParallelFor(count, kBlock, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i += kBlock) {
      std::copy_n(block.data(), std::min(kBlock, end - i), buffer.data() + i);
    }
  });
  return buffer;
}

Buffer<float> InputMaker::Floats(int64_t count) { return Fill<float>(count, Uniform); }

Buffer<bf16> InputMaker::Bf16s(int64_t count) {
  return Fill<bf16>(count, [](uint64_t bits) { return ToBf16(Uniform(bits)); });
}

Buffer<uint8_t> InputMaker::E4m3Codes(int64_t count) {
  return Fill<uint8_t>(count, [](uint64_t bits) {
    const auto code = static_cast<uint8_t>(bits);
    return static_cast<uint8_t>((code & 0x7f) == 0x7f ? code - 1 : code);
  });
}

Buffer<uint8_t> InputMaker::E2m1Bytes(int64_t count) {
  return Fill<uint8_t>(count, [](uint64_t bits) { return static_cast<uint8_t>(bits); });
}

Buffer<uint8_t> InputMaker::E8m0Scales(int64_t count) {
  return Fill<uint8_t>(count, [](uint64_t bits) { return static_cast<uint8_t>(119 + bits % 4); });
}

Buffer<uint8_t> InputMaker::E4m3Scales(int64_t count) {
  return Fill<uint8_t>(count, [](uint64_t bits) { return static_cast<uint8_t>(0x2c + bits % 8); });
}

}  // namespace deepinfer::bench
