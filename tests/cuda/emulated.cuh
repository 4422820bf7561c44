/* CUDA's words for a C compiler: device/prelude.cuh includes this in place of its PTX when HN_EMULATED is
 * defined. A word that the prelude gains is added here in the same change. Threads that do something together
 * (barriers, shuffles, matrix products) call the fake driver, which also notices when they do not. */
#ifndef HN_EMULATED_CUH
#define HN_EMULATED_CUH

#include <stdbool.h>
#include <stddef.h>

#include "emulator.h"

/* What texts use of math.h and string.h: thousands of texts are compiled, and reading the whole of math.h, with
 * all its types, took each of them as long as all that is its own. */
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#define HN_EMU_1(name)                                                                                       \
  double name(double);                                                                                       \
  float name##f(float);
#define HN_EMU_2(name)                                                                                       \
  double name(double, double);                                                                               \
  float name##f(float, float);
HN_EMU_1(acos) HN_EMU_1(acosh) HN_EMU_1(asin) HN_EMU_1(asinh) HN_EMU_1(atan) HN_EMU_1(atanh) HN_EMU_1(cbrt)
HN_EMU_1(ceil) HN_EMU_1(cos) HN_EMU_1(cosh) HN_EMU_1(erf) HN_EMU_1(erfc) HN_EMU_1(exp) HN_EMU_1(exp2)
HN_EMU_1(expm1) HN_EMU_1(fabs) HN_EMU_1(floor) HN_EMU_1(lgamma) HN_EMU_1(log) HN_EMU_1(log10) HN_EMU_1(log1p)
HN_EMU_1(log2) HN_EMU_1(logb) HN_EMU_1(nearbyint) HN_EMU_1(rint) HN_EMU_1(round) HN_EMU_1(sin) HN_EMU_1(sinh)
HN_EMU_1(sqrt) HN_EMU_1(tan) HN_EMU_1(tanh) HN_EMU_1(tgamma) HN_EMU_1(trunc)
HN_EMU_2(atan2) HN_EMU_2(copysign) HN_EMU_2(fdim) HN_EMU_2(fmax) HN_EMU_2(fmin) HN_EMU_2(fmod) HN_EMU_2(hypot)
HN_EMU_2(nextafter) HN_EMU_2(pow) HN_EMU_2(remainder)
#undef HN_EMU_1
#undef HN_EMU_2
double fma(double, double, double), ldexp(double, int), scalbn(double, int), frexp(double, int *);
float fmaf(float, float, float), ldexpf(float, int), scalbnf(float, int), frexpf(float, int *);
double modf(double, double *);
float modff(float, float *);
int ilogb(double), ilogbf(float);
long lrint(double), lrintf(float), lround(double), lroundf(float);
long long llrint(double), llrintf(float), llround(double), llroundf(float);
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

static const hn_emu_api *hn_emu;
static hn_emu_thread *hn_emu_now;
static hn_emu_block hn_emu_block_now;
extern unsigned char __start_hn_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_hn_shared[] __attribute__((weak, visibility("hidden")));
extern const hn_emu_module hn_emu_text;
const hn_emu_module hn_emu_text = {&hn_emu, &hn_emu_now, &hn_emu_block_now, __start_hn_shared,
                                   __stop_hn_shared};

#define threadIdx (hn_emu_now->index)
#define blockIdx (hn_emu_block_now.index)
#define blockDim (hn_emu_block_now.size)
#define gridDim (hn_emu_block_now.grid)
#define warpSize 32
#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ __attribute__((section("hn_shared")))

#define HN_FN static inline __attribute__((unused))
#define HN_KERNEL(name, type, args) HN_KERNEL_BOUNDS(name, type, args, 1024, 1)
#define HN_KERNEL_BOUNDS(name, type, args, threads, blocks)                                                  \
  static void name(const type args);                                                                         \
  static void hn_call_##name(const void *p) { name(*(const type *)p); }                                      \
  extern const hn_emu_entry hn_entry_##name;                                                                 \
  const hn_emu_entry hn_entry_##name = {#name, hn_call_##name, sizeof(type), _Alignof(type), threads};       \
  static void name(const type args)
#define HN_SHARED static __shared__
#define HN_DYNAMIC_SHARED(type, name) type *name = (type *)hn_emu_block_now.dynamic
#define HN_SYNC() hn_emu->sync(hn_emu_now, __LINE__)
#define HN_SYNC_WARP() hn_emu->sync_warp(hn_emu_now)
#define HN_UNROLL

/* ---- CUDA's vectors */
#define HN_EMU_VECTORS(word, type)                                                                           \
  typedef struct word##2 { type x, y; } word##2;                                                             \
  typedef struct word##4 { type x, y, z, w; } __attribute__((aligned(4 * sizeof(type)))) word##4;            \
  HN_FN word##2 make_##word##2(type x, type y) { return (word##2){x, y}; }                                   \
  HN_FN word##4 make_##word##4(type x, type y, type z, type w) { return (word##4){x, y, z, w}; }
HN_EMU_VECTORS(float, float)
HN_EMU_VECTORS(int, int)
HN_EMU_VECTORS(uint, unsigned)
#undef HN_EMU_VECTORS

/* ---- bits and numbers */
HN_FN u32 hn_bits(float f) {
  u32 u;
  memcpy(&u, &f, 4);
  return u;
}
HN_FN float hn_from_bits(u32 u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
HN_FN float hn_f16(u16 h) {
  const u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 31) return hn_from_bits(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0));
  if (e) return hn_from_bits(sign | (e + 112) << 23 | m << 13);
  const float f = (float)m * 0x1p-24f;
  return sign ? -f : f;
}
HN_FN u16 hn_to_f16(float f) {
  const u32 u = hn_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x477ff000) return (u16)(sign | 0x7c00); /* 65520 and above round to infinity */
  if (a < 0x38800000) { /* subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits */
    const u32 r = hn_bits(hn_from_bits(a) + 0.5f) - hn_bits(0.5f);
    return (u16)(sign | r);
  }
  return (u16)(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13));
}
HN_FN float hn_bf16(u16 h) { return hn_from_bits((u32)h << 16); }
HN_FN u16 hn_to_bf16(float f) {
  const u32 u = hn_bits(f);
  if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
HN_FN u32 hn_to_f16x2(float low, float high) { return hn_to_f16(low) | (u32)hn_to_f16(high) << 16; }
HN_FN u32 hn_to_bf16x2(float low, float high) { return hn_to_bf16(low) | (u32)hn_to_bf16(high) << 16; }
HN_FN float hn_max_nan(float a, float b) { return a != a ? a : a > b ? a : b; }
HN_FN float hn_min_nan(float a, float b) { return a != a ? a : a < b ? a : b; }
HN_FN u32 hn_max_f16x2(u32 a, u32 b) {
  return hn_to_f16x2(hn_max_nan(hn_f16((u16)a), hn_f16((u16)b)), hn_max_nan(hn_f16((u16)(a >> 16)), hn_f16((u16)(b >> 16))));
}
HN_FN u32 hn_max_bf16x2(u32 a, u32 b) {
  return hn_to_bf16x2(hn_max_nan(hn_bf16((u16)a), hn_bf16((u16)b)), hn_max_nan(hn_bf16((u16)(a >> 16)), hn_bf16((u16)(b >> 16))));
}
HN_FN u32 hn_sub_f16x2(u32 a, u32 b) {
  return hn_to_f16x2(hn_f16((u16)a) - hn_f16((u16)b), hn_f16((u16)(a >> 16)) - hn_f16((u16)(b >> 16)));
}
HN_FN u32 hn_sub_bf16x2(u32 a, u32 b) {
  return hn_to_bf16x2(hn_bf16((u16)a) - hn_bf16((u16)b), hn_bf16((u16)(a >> 16)) - hn_bf16((u16)(b >> 16)));
}
HN_FN u32 hn_to_tf32(float f) { /* nearest, ties away from zero */
  const u32 u = hn_bits(f);
  return (u & 0x7fffffff) >= 0x7f800000 ? u : (u + 0x1000) & 0xffffe000u;
}
HN_FN u32 __float_as_uint(float f) { return hn_bits(f); }
HN_FN float __uint_as_float(u32 u) { return hn_from_bits(u); }
HN_FN int __float_as_int(float f) { return (int)hn_bits(f); }
HN_FN float __int_as_float(int i) { return hn_from_bits((u32)i); }
HN_FN float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
#define __exp10f(x) powf(10, x)
/* What fmaxf and fminf answer, without a call: kernels ask for millions. */
HN_FN float hn_emu_max(float x, float y) { return x < y || x != x ? y : x; }
HN_FN float hn_emu_min(float x, float y) { return x > y || x != x ? y : x; }
#define fmaxf hn_emu_max
#define fminf hn_emu_min
HN_FN float __fdividef(float x, float y) { return x / y; }
HN_FN float __frcp_rn(float x) { return 1.0f / x; }
HN_FN float __fsqrt_rn(float x) { return sqrtf(x); }
HN_FN float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
HN_FN float hn_fma_sat(float x, float y, float z) { return fminf(fmaxf(fmaf(x, y, z), 0), 1); }
HN_FN float __fadd_rn(float x, float y) { return x + y; }
HN_FN float __fmul_rn(float x, float y) { return x * y; }
HN_FN float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
HN_FN float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
HN_FN int __float2int_rn(float x) { return (int)rintf(x); }
HN_FN int __float2int_rz(float x) { return (int)x; }
HN_FN int __float2int_rd(float x) { return (int)floorf(x); }
HN_FN float __int2float_rn(int x) { return (float)x; }
HN_FN int __popc(u32 x) { return __builtin_popcount(x); }
HN_FN int __clz(int x) { return x ? __builtin_clz((u32)x) : 32; }
HN_FN int __ffs(int x) { return __builtin_ffs(x); }
HN_FN u32 __umulhi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
HN_FN int __mulhi(int a, int b) { return (int)((i64)a * b >> 32); }
#define min(a, b)                                                                                            \
  ({                                                                                                         \
    __auto_type hn_a_ = (a);                                                                                 \
    __auto_type hn_b_ = (b);                                                                                 \
    hn_b_ < hn_a_ ? hn_b_ : hn_a_;                                                                           \
  })
#define max(a, b)                                                                                            \
  ({                                                                                                         \
    __auto_type hn_a_ = (a);                                                                                 \
    __auto_type hn_b_ = (b);                                                                                 \
    hn_a_ < hn_b_ ? hn_b_ : hn_a_;                                                                           \
  })
#define __ldg(p) (*(p))
#define __ldcs(p) (*(p))
#define __stcs(p, x) (*(p) = (x))

/* ---- memory */
HN_FN void hn_emu_aligned(const void *p, u32 n, const char *what) {
  if ((size_t)p % n) hn_emu->fault(hn_emu_now, what);
}
HN_FN hn_u4 hn_ld16(const void *p) {
  hn_u4 v;
  hn_emu_aligned(p, 16, "hn_ld16: the address is not 16-byte aligned");
  memcpy(&v, p, sizeof v);
  return v;
}
HN_FN void hn_st16(void *p, hn_u4 v) {
  hn_emu_aligned(p, 16, "hn_st16: the address is not 16-byte aligned");
  memcpy(p, &v, sizeof v);
}
HN_FN void hn_touch(const void *p) {
  hn_emu_aligned(p, 4, "hn_touch: the address is not 4-byte aligned");
  (void)*(const volatile u32 *)p;
}
HN_FN void hn_atomic_add(float *p, float x) {
  u32 old = __atomic_load_n((u32 *)p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n((u32 *)p, &old, hn_bits(hn_from_bits(old) + x), true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}
HN_FN u32 hn_atomic_add_u32(u32 *p, u32 x) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }
HN_FN void hn_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#define __threadfence() hn_fence()
#define __syncthreads() HN_SYNC()
#define __syncwarp() HN_SYNC_WARP()

/* ---- within a warp */
HN_FN u32 hn_shfl_u32(u32 x, int lane) { return hn_emu->shuffle(hn_emu_now, x, (u32)lane & 31); }
HN_FN u32 hn_shfl_xor_u32(u32 x, int mask) { return hn_shfl_u32(x, (int)hn_emu_now->lane ^ mask); }
HN_FN float hn_shfl(float x, int lane) { return hn_from_bits(hn_shfl_u32(hn_bits(x), lane)); }
HN_FN float hn_shfl_xor(float x, int mask) { return hn_from_bits(hn_shfl_xor_u32(hn_bits(x), mask)); }
HN_FN u32 hn_ballot(int predicate) { return hn_emu->ballot(hn_emu_now, predicate); }

/* ---- copies behind the computation: the target is unreadable (NaN) until the wait, which does the copy */
HN_FN u32 hn_shared_address(const void *p) { return hn_emu->shared_address(hn_emu_now, p); }
HN_FN void hn_cp_async16(void *to, const void *from, u32 bytes) {
  hn_emu->cp_async(hn_emu_now, to, from, 16, bytes);
}
HN_FN void hn_cp_async8(void *to, const void *from, u32 bytes) { hn_emu->cp_async(hn_emu_now, to, from, 8, bytes); }
HN_FN void hn_cp_async4(void *to, const void *from, u32 bytes) { hn_emu->cp_async(hn_emu_now, to, from, 4, bytes); }
HN_FN void hn_cp_async_commit(void) { hn_emu->cp_commit(hn_emu_now); }
#define HN_CP_ASYNC_WAIT(pending) hn_emu->cp_wait(hn_emu_now, pending)

/* ---- clusters: only dynamic shared memory is each block's own */
HN_FN void hn_cluster_arrive(void) {}
HN_FN void hn_cluster_wait(void) { hn_emu->cluster_sync(hn_emu_now); }
HN_FN void hn_cluster_sync(void) { hn_emu->cluster_sync(hn_emu_now); }
HN_FN void hn_cluster_load8(const float *at, u32 rank, float x[8]) {
  memcpy(x, hn_emu->cluster_at(hn_emu_now, at, rank), 8 * sizeof *x);
}
HN_FN void hn_cluster_store(float *at, u32 rank, float x) {
  *(float *)hn_emu->cluster_at(hn_emu_now, at, rank) = x;
}

/* ---- tensor cores */
HN_FN void hn_ldmatrix4(u32 r[4], const void *row) { hn_emu->ldmatrix(hn_emu_now, r, row, 4, 0); }
HN_FN void hn_ldmatrix4_trans(u32 r[4], const void *row) { hn_emu->ldmatrix(hn_emu_now, r, row, 4, 1); }
HN_FN void hn_mma_f16(float d[4], const u32 a[4], const u32 b[2]) {
  hn_emu->mma(hn_emu_now, HN_EMU_F16, d, a, b);
}
HN_FN void hn_mma_bf16(float d[4], const u32 a[4], const u32 b[2]) {
  hn_emu->mma(hn_emu_now, HN_EMU_BF16, d, a, b);
}
HN_FN void hn_mma_tf32(float d[4], const u32 a[4], const u32 b[2]) {
  hn_emu->mma(hn_emu_now, HN_EMU_TF32, d, a, b);
}
HN_FN void hn_mma_u8(i32 d[4], const u32 a[4], const u32 b[2]) {
  hn_emu->mma(hn_emu_now, HN_EMU_U8, d, a, b);
}
HN_FN void hn_mma_i8(i32 d[4], const u32 a[4], const u32 b[2]) {
  hn_emu->mma(hn_emu_now, HN_EMU_I8, d, a, b);
}
HN_FN i32 hn_dot4_u8(u32 a, u32 b, i32 c) {
  u32 sum = (u32)c;
  for (int k = 0; k < 4; k++) sum += (u32)((i32)(a >> 8 * k & 0xff) * (i8)(b >> 8 * k));
  return (i32)sum;
}
HN_FN i32 hn_dot4_i8(u32 a, u32 b, i32 c) {
  u32 sum = (u32)c;
  for (int k = 0; k < 4; k++) sum += (u32)((i8)(a >> 8 * k) * (i8)(b >> 8 * k));
  return (i32)sum;
}
HN_FN u32 hn_max_u16x2(u32 a, u32 b) {
  const u32 low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff, high = a >> 16 > b >> 16 ? a >> 16 : b >> 16;
  return high << 16 | low;
}
HN_FN u32 hn_max_i16x2(u32 a, u32 b) { return hn_max_u16x2(a ^ 0x80008000u, b ^ 0x80008000u) ^ 0x80008000u; }
HN_FN u32 hn_bytes(u32 low, u32 high, u32 pick) {
  const u64 all = (u64)high << 32 | low;
  u32 r = 0;
  for (int k = 0; k < 4; k++) r |= (u32)(all >> 8 * (pick >> 4 * k & 7) & 0xff) << 8 * k;
  return r;
}
HN_FN u32 hn_emu_code(i32 x, i32 low, i32 high) { return (u32)(x < low ? low : x > high ? high : x) & 0xff; }
HN_FN u32 hn_codes_u8(i32 a, i32 b, i32 c, i32 d) {
  return hn_emu_code(a, 0, 255) | hn_emu_code(b, 0, 255) << 8 | hn_emu_code(c, 0, 255) << 16 |
         hn_emu_code(d, 0, 255) << 24;
}
HN_FN u32 hn_codes_i8(i32 a, i32 b, i32 c, i32 d) {
  return hn_emu_code(a, -128, 127) | hn_emu_code(b, -128, 127) << 8 | hn_emu_code(c, -128, 127) << 16 |
         hn_emu_code(d, -128, 127) << 24;
}

#endif
