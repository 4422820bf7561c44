/* What device texts stand on. Self-contained: no toolkit headers.
 *
 * Device texts are C with CUDA's words: no templates, references or overloads, so that a C compiler can build
 * them against tests/cuda/emulated.cuh, where the threads of a block are fibers. What is not C (PTX) is wrapped
 * here, once. A kernel takes one struct by value; the host fills the same struct (declared in a header that
 * both include, <name>_args.h, which may use the types below and nothing else). */
#ifndef HN_PRELUDE_CUH
#define HN_PRELUDE_CUH

#include "types.h"

/* Names made of what the prefix defines. */
#define HN_PASTE_(a, b) a##b
#define HN_PASTE(a, b) HN_PASTE_(a, b)

#ifdef HN_EMULATED
#include "emulated.cuh"
#define HN_GRID_WAIT() ((void)0)
#define HN_GRID_GO() ((void)0)
#else

#define HN_FN static __device__ __forceinline__
#define HN_KERNEL(name, type, args) extern "C" __global__ void name(const __grid_constant__ type args)
#define HN_KERNEL_BOUNDS(name, type, args, threads, blocks)                                                  \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ type args)
#define HN_SHARED static __shared__
/* Dynamic shared memory as an array of `type`, 1024-byte aligned where the kernel uses no static one. */
#define HN_DYNAMIC_SHARED(type, name)                                                                        \
  extern __shared__ __align__(1024) unsigned char hn_dynamic_shared[];                                       \
  type *name = (type *)hn_dynamic_shared
#define HN_SYNC() __syncthreads()
#define HN_SYNC_WARP() __syncwarp()
#define HN_UNROLL _Pragma("unroll")

/* math.h's, which NVRTC does not bring. */
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

/* ---- kernels that overlap (hn_cuda_shape.overlap). HN_GRID_WAIT: all that the kernel before wrote is there,
 * and its memory may be written. HN_GRID_GO: the next kernel may be launched; it waits as well, so this says
 * only that its blocks may take the room that is left. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HN_GRID_WAIT() asm volatile("griddepcontrol.wait;" : : : "memory")
#define HN_GRID_GO() asm volatile("griddepcontrol.launch_dependents;" : : : "memory")
#else
#define HN_GRID_WAIT() ((void)0)
#define HN_GRID_GO() ((void)0)
#endif

/* ---- f16 and bf16 as bits */
HN_FN float hn_f16(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
HN_FN u16 hn_to_f16(float f) { /* nearest, ties to even; beyond the range: infinity */
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
HN_FN float hn_bf16(u16 h) { return __uint_as_float((u32)h << 16); }
HN_FN u32 hn_bits(float f) { return __float_as_uint(f); }
HN_FN float hn_from_bits(u32 u) { return __uint_as_float(u); }

/* ---- 16 bytes at once (aligned) */
HN_FN hn_u4 hn_ld16(const void *p) { /* through L1: for data that several threads read */
  hn_u4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3]) : "l"(p));
  return v;
}
HN_FN void hn_st16(void *p, hn_u4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" : : "l"(p), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3]) : "memory");
}

/* What lies there (4-byte aligned) comes into the first-level cache. */
HN_FN void hn_touch(const void *p) {
  u32 r;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(r) : "l"(p));
}

/* ---- within a warp (all 32 threads take part) */
HN_FN float hn_shfl_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
HN_FN float hn_shfl(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
HN_FN u32 hn_shfl_xor_u32(u32 x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
HN_FN u32 hn_shfl_u32(u32 x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
HN_FN u32 hn_ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
HN_FN void hn_atomic_add(float *p, float x) { atomicAdd(p, x); }
HN_FN u32 hn_atomic_add_u32(u32 *p, u32 x) { return atomicAdd(p, x); }
HN_FN void hn_fence(void) { __threadfence(); }

HN_FN u32 hn_shared_address(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}
/* ---- fragments of 8 x 8 tiles of 16 bits from shared memory, as the PTX manual lays them out for ldmatrix .x4 */
HN_FN void hn_ldmatrix4(u32 r[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(hn_shared_address(row)) : "memory");
}
HN_FN void hn_ldmatrix4_trans(u32 r[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(hn_shared_address(row)) : "memory");
}
/* ---- what architecture 80 has instructions for (ampere.cuh), and 75 other means (turing.cuh).
 * hn_to_f16x2, hn_to_bf16, hn_to_bf16x2: rounded as hn_to_f16 does. hn_max_nan, hn_min_nan: NaN when either is; of
 * each half: hn_max_f16x2, hn_max_bf16x2; hn_sub_f16x2, hn_sub_bf16x2: a - b. hn_cp_async16, 8, 4: as many bytes from global to shared memory behind the
 * computation, of which the first `bytes` come from `from` and the rest are zeros.
 * hn_mma_f16, bf16, tf32: d += a b, d and sums in f32, 16 x 8 x 16 (x 8 for tf32); fragments as the PTX manual lays
 * them out for mma.m16n8k16 and m16n8k8. hn_mma_u8, hn_mma_i8, codes: 16 x 8 x 32, sums of i32 that wrap; a: u8 or i8,
 * b: i8; fragments hold four codes where 16-bit types have two. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#include "turing.cuh"
#else
#include "ampere.cuh"
#endif

/* c and the products of four codes (u8 or i8) and four of i8, without tensor cores. */
HN_FN i32 hn_dot4_u8(u32 a, u32 b, i32 c) {
  i32 d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
HN_FN i32 hn_dot4_i8(u32 a, u32 b, i32 c) {
  i32 d;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
/* The larger ones of two pairs of 16-bit integers. */
#if __CUDA_ARCH__ >= 900
HN_FN u32 hn_max_u16x2(u32 a, u32 b) {
  u32 d;
  asm("max.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
HN_FN u32 hn_max_i16x2(u32 a, u32 b) {
  u32 d;
  asm("max.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
#else
HN_FN u32 hn_max_u16x2(u32 a, u32 b) { return __vmaxu2(a, b); }
HN_FN u32 hn_max_i16x2(u32 a, u32 b) { return __vmaxs2(a, b); }
#endif
/* Bytes of low (0 to 3) and high (4 to 7) as the hexadecimal digits of `pick` say, the lowest first. */
HN_FN u32 hn_bytes(u32 low, u32 high, u32 pick) { return __byte_perm(low, high, pick); }
/* a b + c, rounded once, within 0 and 1. */
HN_FN float hn_fma_sat(float a, float b, float c) {
  float r;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
}
/* Four integers as codes, the first lowest; saturated. */
HN_FN u32 hn_codes_u8(i32 a, i32 b, i32 c, i32 d) {
  u32 r;
  asm("{\n.reg .b32 t;\ncvt.pack.sat.u8.s32.b32 t, %4, %3, 0;\ncvt.pack.sat.u8.s32.b32 %0, %2, %1, t;\n}"
      : "=r"(r) : "r"(a), "r"(b), "r"(c), "r"(d));
  return r;
}
HN_FN u32 hn_codes_i8(i32 a, i32 b, i32 c, i32 d) {
  u32 r;
  asm("{\n.reg .b32 t;\ncvt.pack.sat.s8.s32.b32 t, %4, %3, 0;\ncvt.pack.sat.s8.s32.b32 %0, %2, %1, t;\n}"
      : "=r"(r) : "r"(a), "r"(b), "r"(c), "r"(d));
  return r;
}

/* ---- clusters (arch 90): all threads of all blocks meet; eight floats of the same place of block `rank`'s shared
 * memory (16-byte aligned) */
HN_FN void hn_cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
/* The same in two: what lies between is done while the others come. */
HN_FN void hn_cluster_arrive(void) { asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory"); }
HN_FN void hn_cluster_wait(void) { asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory"); }
/* A float to the same place of block `rank`'s shared memory. */
HN_FN void hn_cluster_store(float *at, u32 rank, float x) {
  u32 a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(hn_shared_address(at)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(a), "f"(x) : "memory");
}
HN_FN void hn_cluster_load8(const float *at, u32 rank, float x[8]) {
  u32 a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(hn_shared_address(at)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(a) : "memory");
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(x[4]), "=f"(x[5]), "=f"(x[6]), "=f"(x[7]) : "r"(a + 16) : "memory");
}

#endif

/* ---- elements by type: hn_load_<type>(p, i) as float, hn_store_<type>(p, i, x) from float */
HN_FN float hn_load_f32(const void *p, i64 i) { return ((const float *)p)[i]; }
HN_FN float hn_load_f16(const void *p, i64 i) { return hn_f16(((const u16 *)p)[i]); }
HN_FN float hn_load_bf16(const void *p, i64 i) { return hn_bf16(((const u16 *)p)[i]); }
HN_FN void hn_store_f32(void *p, i64 i, float x) { ((float *)p)[i] = x; }
HN_FN void hn_store_f16(void *p, i64 i, float x) { ((u16 *)p)[i] = hn_to_f16(x); }
HN_FN void hn_store_bf16(void *p, i64 i, float x) { ((u16 *)p)[i] = hn_to_bf16(x); }

/* ---- eight elements at once; i is a multiple of 8 and the memory 16-byte aligned */
HN_FN void hn_load8_f32(const void *p, i64 i, float x[8]) {
  hn_u4 a = hn_ld16((const float *)p + i), b = hn_ld16((const float *)p + i + 4);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_from_bits(a.v[k]), x[k + 4] = hn_from_bits(b.v[k]);
}
HN_FN void hn_load8_f16(const void *p, i64 i, float x[8]) {
  hn_u4 a = hn_ld16((const u16 *)p + i);
  HN_UNROLL for (int k = 0; k < 4; k++) x[2 * k] = hn_f16((u16)a.v[k]), x[2 * k + 1] = hn_f16((u16)(a.v[k] >> 16));
}
HN_FN void hn_load8_bf16(const void *p, i64 i, float x[8]) {
  hn_u4 a = hn_ld16((const u16 *)p + i);
  HN_UNROLL for (int k = 0; k < 4; k++) x[2 * k] = hn_from_bits(a.v[k] << 16), x[2 * k + 1] = hn_from_bits(a.v[k] & 0xffff0000u);
}
HN_FN void hn_store8_f32(void *p, i64 i, const float x[8]) {
  hn_u4 a, b;
  HN_UNROLL for (int k = 0; k < 4; k++) a.v[k] = hn_bits(x[k]), b.v[k] = hn_bits(x[k + 4]);
  hn_st16((float *)p + i, a);
  hn_st16((float *)p + i + 4, b);
}
HN_FN void hn_store8_f16(void *p, i64 i, const float x[8]) {
  hn_u4 a;
  HN_UNROLL for (int k = 0; k < 4; k++) a.v[k] = hn_to_f16x2(x[2 * k], x[2 * k + 1]);
  hn_st16((u16 *)p + i, a);
}
HN_FN void hn_store8_bf16(void *p, i64 i, const float x[8]) {
  hn_u4 a;
  HN_UNROLL for (int k = 0; k < 4; k++) a.v[k] = hn_to_bf16x2(x[2 * k], x[2 * k + 1]);
  hn_st16((u16 *)p + i, a);
}

/* The step's storage type where a text handles one: prefix "#define HN_T f16". */
#define HN_JOIN_(a, b) a##b
#define HN_JOIN(a, b) HN_JOIN_(a, b)
#ifdef HN_T
#define hn_load HN_JOIN(hn_load_, HN_T)
#define hn_store HN_JOIN(hn_store_, HN_T)
#define hn_load8 HN_JOIN(hn_load8_, HN_T)
#define hn_store8 HN_JOIN(hn_store8_, HN_T)
#endif

HN_FN float hn_warp_sum(float x) {
  HN_UNROLL for (int m = 16; m; m >>= 1) x += hn_shfl_xor(x, m);
  return x;
}
HN_FN float hn_warp_max(float x) {
  HN_UNROLL for (int m = 16; m; m >>= 1) x = fmaxf(x, hn_shfl_xor(x, m));
  return x;
}

#endif
