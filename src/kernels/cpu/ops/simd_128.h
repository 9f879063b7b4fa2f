// F32x16 in four 128-bit vectors of the compiler's own kind, which it maps to SSE2, NEON or plain
// registers. Contract: simd.h.
#pragma once

namespace deepinfer::kernels::cpu::DEEPINFER_TARGET {

typedef float V4 __attribute__((vector_size(16)));
typedef int32_t I4 __attribute__((vector_size(16)));

struct F32x16 {
  V4 v[4];
};
struct I32x16 {
  I4 v[4];
};
struct Mask16 {
  I4 v[4];
};

DEEPINFER_INLINE F32x16 Set1(float x) {
  const V4 a = {x, x, x, x};
  return {{a, a, a, a}};
}
DEEPINFER_INLINE F32x16 Zero() { return Set1(0.0f); }
DEEPINFER_INLINE F32x16 Load(const float* p) {
  F32x16 a;
  __builtin_memcpy(&a, p, sizeof(a));
  return a;
}
DEEPINFER_INLINE void Store(F32x16 a, float* p) { __builtin_memcpy(p, &a, sizeof(a)); }
DEEPINFER_INLINE F32x16 LoadFirst(const float* p, int64_t n) {
  float t[16];
  for (int64_t i = 0; i < 16; ++i) t[i] = i < n ? p[i] : 0.0f;
  return Load(t);
}
DEEPINFER_INLINE void StoreFirst(F32x16 a, float* p, int64_t n) {
  float t[16];
  Store(a, t);
  for (int64_t i = 0; i < n; ++i) p[i] = t[i];
}

#define DEEPINFER_LANEWISE(TYPE, OP)                                                   \
  DEEPINFER_INLINE TYPE operator OP(TYPE a, TYPE b) {                                  \
    return {{a.v[0] OP b.v[0], a.v[1] OP b.v[1], a.v[2] OP b.v[2], a.v[3] OP b.v[3]}}; \
  }
DEEPINFER_LANEWISE(F32x16, +)
DEEPINFER_LANEWISE(F32x16, -)
DEEPINFER_LANEWISE(F32x16, *)
DEEPINFER_LANEWISE(F32x16, /)
DEEPINFER_LANEWISE(I32x16, +)
DEEPINFER_LANEWISE(I32x16, -)
#undef DEEPINFER_LANEWISE

DEEPINFER_INLINE F32x16 MulAdd(F32x16 a, F32x16 b, F32x16 c) { return a * b + c; }

DEEPINFER_INLINE Mask16 Less(F32x16 a, F32x16 b) {
  return {{a.v[0] < b.v[0], a.v[1] < b.v[1], a.v[2] < b.v[2], a.v[3] < b.v[3]}};
}
DEEPINFER_INLINE Mask16 LessEqual(F32x16 a, F32x16 b) {
  return {{a.v[0] <= b.v[0], a.v[1] <= b.v[1], a.v[2] <= b.v[2], a.v[3] <= b.v[3]}};
}
DEEPINFER_INLINE I32x16 Select(Mask16 m, I32x16 if_true, I32x16 if_false) {
  I32x16 r;
  for (int i = 0; i < 4; ++i) r.v[i] = (m.v[i] & if_true.v[i]) | (~m.v[i] & if_false.v[i]);
  return r;
}
DEEPINFER_INLINE I32x16 AsI32(F32x16 a) { return __builtin_bit_cast(I32x16, a); }
DEEPINFER_INLINE F32x16 AsF32(I32x16 a) { return __builtin_bit_cast(F32x16, a); }
DEEPINFER_INLINE F32x16 Select(Mask16 m, F32x16 if_true, F32x16 if_false) {
  return AsF32(Select(m, AsI32(if_true), AsI32(if_false)));
}
DEEPINFER_INLINE uint32_t Bits(Mask16 m) {
  int32_t t[16];
  __builtin_memcpy(t, &m, sizeof(t));
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= (t[i] != 0 ? uint32_t{1} : uint32_t{0}) << i;
  return bits;
}
DEEPINFER_INLINE F32x16 VMax(F32x16 a, F32x16 b) { return Select(Less(b, a), a, b); }
DEEPINFER_INLINE F32x16 VMin(F32x16 a, F32x16 b) { return Select(Less(a, b), a, b); }

DEEPINFER_INLINE I32x16 I32Set1(int32_t x) {
  const I4 a = {x, x, x, x};
  return {{a, a, a, a}};
}
DEEPINFER_INLINE I32x16 Load(const int32_t* p) {
  I32x16 a;
  __builtin_memcpy(&a, p, sizeof(a));
  return a;
}
DEEPINFER_INLINE void Store(I32x16 a, int32_t* p) { __builtin_memcpy(p, &a, sizeof(a)); }
DEEPINFER_INLINE void StoreBytes(I32x16 a, uint8_t* p) {
  int32_t t[16];
  Store(a, t);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<uint8_t>(t[i]);
}
DEEPINFER_INLINE void StoreNibbles(I32x16 a, uint8_t* p) {
  int32_t t[16];
  Store(a, t);
  for (int i = 0; i < 8; ++i) p[i] = static_cast<uint8_t>(t[2 * i] | t[2 * i + 1] << 4);
}
DEEPINFER_INLINE I32x16 And(I32x16 a, I32x16 b) {
  return {{a.v[0] & b.v[0], a.v[1] & b.v[1], a.v[2] & b.v[2], a.v[3] & b.v[3]}};
}
DEEPINFER_INLINE I32x16 Or(I32x16 a, I32x16 b) {
  return {{a.v[0] | b.v[0], a.v[1] | b.v[1], a.v[2] | b.v[2], a.v[3] | b.v[3]}};
}
template <int n>
DEEPINFER_INLINE I32x16 ShiftLeft(I32x16 a) {
  return {{a.v[0] << n, a.v[1] << n, a.v[2] << n, a.v[3] << n}};
}
template <int n>
DEEPINFER_INLINE I32x16 ShiftRight(I32x16 a) {
  return {{a.v[0] >> n, a.v[1] >> n, a.v[2] >> n, a.v[3] >> n}};
}
DEEPINFER_INLINE F32x16 Abs(F32x16 a) { return AsF32(And(AsI32(a), I32Set1(0x7fffffff))); }

// The lanes of m, one after the other.
DEEPINFER_INLINE void StoreSelected(Mask16 m, F32x16 a, float* p) {
  float t[16];
  Store(a, t);
  for (uint32_t bits = Bits(m); bits != 0; bits &= bits - 1) *p++ = t[__builtin_ctz(bits)];
}
DEEPINFER_INLINE void StoreSelected(Mask16 m, I32x16 a, int32_t* p) {
  int32_t t[16];
  Store(a, t);
  for (uint32_t bits = Bits(m); bits != 0; bits &= bits - 1) *p++ = t[__builtin_ctz(bits)];
}

// Lane i with i + 8, then + 4, + 2, + 1.
DEEPINFER_INLINE float SumLanes(F32x16 a) {
  const V4 c = (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
  return (c[0] + c[2]) + (c[1] + c[3]);
}
DEEPINFER_INLINE float MaxLanes(F32x16 a) {
  float t[16];
  Store(a, t);
  for (int i = 1; i < 16; ++i) t[0] = Max(t[0], t[i]);
  return t[0];
}

DEEPINFER_INLINE I32x16 NearestBf16Bits(F32x16 a) {
  const I32x16 u = AsI32(a);
  const I32x16 high = And(ShiftRight<16>(u), I32Set1(0xffff));
  const I32x16 odd = And(high, I32Set1(1));
  // Unsigned, since rounding may carry into the sign of a negative number's pattern.
  I32x16 rounded;
  for (int i = 0; i < 4; ++i) {
    typedef uint32_t U4 __attribute__((vector_size(16)));
    rounded.v[i] = reinterpret_cast<I4>(
        (reinterpret_cast<U4>(u.v[i]) + 0x7fffu + reinterpret_cast<U4>(odd.v[i])) >> 16);
  }
  return Select(LessEqual(a, a), rounded, Or(high, I32Set1(0x40)));
}
DEEPINFER_INLINE F32x16 RoundBf16(F32x16 a) { return AsF32(ShiftLeft<16>(NearestBf16Bits(a))); }
DEEPINFER_INLINE F32x16 LoadBf16First(const bf16* p, int64_t n) {
  int32_t t[16];
  for (int64_t i = 0; i < 16; ++i) {
    t[i] = i < n ? static_cast<int32_t>(static_cast<uint32_t>(p[i].bits) << 16) : 0;
  }
  return AsF32(Load(t));
}
DEEPINFER_INLINE F32x16 LoadBf16(const bf16* p) {
  int32_t t[16];
  for (int i = 0; i < 16; ++i) t[i] = static_cast<int32_t>(static_cast<uint32_t>(p[i].bits) << 16);
  return AsF32(Load(t));
}
DEEPINFER_INLINE void StoreBf16First(F32x16 a, bf16* p, int64_t n) {
  int32_t t[16];
  Store(NearestBf16Bits(a), t);
  for (int64_t i = 0; i < n; ++i) p[i].bits = static_cast<uint16_t>(t[i]);
}
DEEPINFER_INLINE void StoreBf16(F32x16 a, bf16* p) { StoreBf16First(a, p, 16); }

DEEPINFER_INLINE F32x16 LoadE4m3(const uint8_t* p) {
  int32_t t[16];
  for (int i = 0; i < 16; ++i) t[i] = p[i];
  const I32x16 c = Load(t);
  const I32x16 bits =
      Or(ShiftLeft<20>(And(c, I32Set1(0x7f))), ShiftLeft<24>(And(c, I32Set1(0x80))));
  return AsF32(bits) * Set1(0x1p120f);
}
DEEPINFER_INLINE F32x16 LoadE2m1(const uint8_t* p) {
  constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                 -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  float t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = kValues[p[i] & 15];
    t[2 * i + 1] = kValues[p[i] >> 4];
  }
  return Load(t);
}

}  // namespace deepinfer::kernels::cpu::DEEPINFER_TARGET
