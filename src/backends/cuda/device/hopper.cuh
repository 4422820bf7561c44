/* Hopper (sm_90a) only: barriers in shared memory, the tensor copy engine, products of warpgroups. Not for the
 * emulator. Facts are the PTX manual's; addresses of shared memory are 32-bit. */
#ifndef HN_HOPPER_CUH
#define HN_HOPPER_CUH

#include "prelude.cuh"

/* ---- barriers (mbarrier) */
HN_FN void hn_barrier_init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(count) : "memory");
}
/* Makes initialised barriers visible to the copy engine (and to the cluster). */
HN_FN void hn_barrier_init_fence(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}
/* Arrives, and has the phase wait for `bytes` more of copies. */
HN_FN void hn_barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}
HN_FN void hn_barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
/* Waits until the phase of that parity is complete (a fresh barrier's "phase before" has parity 1). */
HN_FN void hn_barrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n"
      "@p bra done;\n"
      "bra again;\n"
      "done:\n"
      "}\n" : : "r"(barrier), "r"(parity) : "memory");
}
/* Barrier `id` (1..15) among `threads` threads of the block. */
HN_FN void hn_sync_some(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

/* ---- the tensor copy engine */
typedef struct hn_tensor_map {
  u64 word[16];
} __attribute__((aligned(64))) hn_tensor_map;

/* What ordinary stores wrote to shared memory becomes visible to copies and products that start later. */
HN_FN void hn_async_fence(void) { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
HN_FN void hn_map_prefetch(const void *map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}
/* Box at (x, y) of a matrix; bytes arrive at the barrier. */
HN_FN void hn_tma_load_2d(u32 to, const void *map, u32 barrier, i32 x, i32 y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               : : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
/* Box of images: channels from c on, pixels from (x, y) on, images from n on. */
HN_FN void hn_tma_load_4d(u32 to, const void *map, u32 barrier, i32 c, i32 x, i32 y, i32 n) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
      : : "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(n) : "memory");
}
/* Column of pixels, from base pixel (w, h, n) of the bounding box on, channels from c on, shifted by a tap. */
HN_FN void hn_tma_load_im2col(u32 to, const void *map, u32 barrier, i32 c, i32 w, i32 h, i32 n, u32 tap_w, u32 tap_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
      : : "r"(to), "l"(map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n), "h"((u16)tap_w), "h"((u16)tap_h) : "memory");
}
HN_FN void hn_bulk_load(u32 to, const void *from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               : : "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
HN_FN void hn_tma_store_2d(const void *map, u32 from, i32 x, i32 y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               : : "l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
HN_FN void hn_tma_store_4d(const void *map, u32 from, i32 c, i32 x, i32 y, i32 n) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
               : : "l"(map), "r"(from), "r"(c), "r"(x), "r"(y), "r"(n) : "memory");
}
HN_FN void hn_bulk_commit(void) { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
/* Until all but the last `n` groups of this thread's stores have read shared memory; until all are done. */
#define HN_BULK_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(n) : "memory")
HN_FN void hn_bulk_wait(void) { asm volatile("cp.async.bulk.wait_group 0;" : : : "memory"); }

/* Four 8 x 8 matrices of 16-bit elements between shared memory and registers; lane l names row l % 8 of matrix
 * l / 8, and holds of each matrix elements 2 (l % 4) and the next of row l / 4. */
HN_FN hn_u4 hn_matrix_load(u32 row) {
  hn_u4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3]) : "r"(row) : "memory");
  return v;
}
HN_FN void hn_matrix_store(u32 row, hn_u4 v) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
               : : "r"(row), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3]) : "memory");
}
/* 16 bytes through the first-level cache, of which the first `bytes` come from `from` and the rest are zeros. */
HN_FN void hn_cp_async16_near(u32 to, const void *from, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}
HN_FN void hn_shared_ld8(u32 at, u32 *x, u32 *y) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(*x), "=r"(*y) : "r"(at) : "memory");
}
HN_FN void hn_shared_st8(u32 at, u32 x, u32 y) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};" : : "r"(at), "r"(x), "r"(y) : "memory");
}

HN_FN hn_u4 hn_shared_ld16(u32 at) {
  hn_u4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3]) : "r"(at) : "memory");
  return v;
}
HN_FN void hn_shared_st16(u32 at, hn_u4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" : : "r"(at), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3]) : "memory");
}

/* ---- clusters: where in one, and another block's shared memory by address */
HN_FN u32 hn_cluster_rank(void) {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
HN_FN u32 hn_cluster_size(void) {
  u32 r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return r;
}
/* Another block's address of what is at `at` in this one's. */
HN_FN u32 hn_cluster_address(u32 at, u32 rank) {
  u32 r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at), "r"(rank));
  return r;
}
HN_FN hn_u4 hn_cluster_ld16(u32 at) {
  hn_u4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3]) : "r"(at) : "memory");
  return v;
}
HN_FN void hn_cluster_st16(u32 at, hn_u4 x) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1,%2,%3,%4};" : : "r"(at), "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]) : "memory");
}
/* ---- registers of a warpgroup: all its warps take part */
#define HN_REGISTERS_LESS(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(n))
#define HN_REGISTERS_MORE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(n))

/* ---- products of warpgroups: D[64][n] (f32, registers) += A[64][16] B[n][16]^T, both in shared memory with K
 * contiguous. Thread t of the warpgroup holds in d[4 j + 2 h + e] row 16 (t / 32) + 8 h + (t % 32) / 4, column
 * 8 j + 2 (t % 4) + e. */
HN_FN void hn_wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
HN_FN void hn_wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
#define HN_WGMMA_WAIT(pending) asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(pending) : "memory")

/* Descriptor of an operand whose rows are `row` bytes (128, 64 or 32, swizzled over as many) apart. Adding
 * bytes / 16 moves it. */
HN_FN u64 hn_wgmma_operand(u32 address, u32 row) {
  u64 mode = row == 128 ? 1 : row == 64 ? 2 : 3;
  return mode << 62 | (u64)(row * 8 >> 4) << 32 | (u64)1 << 16 | (address >> 4 & 0x3fff);
}


/* HN_DEFINE_WGMMA_n(name, types): void name(float d[n / 2], u64 a, u64 b, u32 accumulate), for the types' names in PTX.
 * Written once for all types: those of sums, their constraint, K and types, what follows the predicate. */
#define HN_DEFINE_WGMMA_16_(name, type, way, kind, tail)                                                              \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n16k" kind " "                                                      \
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, "                                                                 \
                 "%8, %9, p" tail ";\n}\n"                                                                            \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7])             \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_32_(name, type, way, kind, tail)                                                              \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n32k" kind " "                                                      \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "                           \
                 "%16, %17, p" tail ";\n}\n"                                                                          \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15])                  \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_64_(name, type, way, kind, tail)                                                              \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n64k" kind " "                                                      \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31}, "                                                          \
                 "%32, %33, p" tail ";\n}\n"                                                                          \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31])                 \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_96_(name, type, way, kind, tail)                                                              \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n96k" kind " "                                                      \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "\
                 "%46, %47}, "                                                                                        \
                 "%48, %49, p" tail ";\n}\n"                                                                          \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31]), way(d[32]),    \
                   way(d[33]), way(d[34]), way(d[35]), way(d[36]), way(d[37]), way(d[38]), way(d[39]), way(d[40]),    \
                   way(d[41]), way(d[42]), way(d[43]), way(d[44]), way(d[45]), way(d[46]), way(d[47])                 \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_128_(name, type, way, kind, tail)                                                             \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n128k" kind " "                                                     \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "\
                 "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "        \
                 "%64, %65, p" tail ";\n}\n"                                                                          \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31]), way(d[32]),    \
                   way(d[33]), way(d[34]), way(d[35]), way(d[36]), way(d[37]), way(d[38]), way(d[39]), way(d[40]),    \
                   way(d[41]), way(d[42]), way(d[43]), way(d[44]), way(d[45]), way(d[46]), way(d[47]), way(d[48]),    \
                   way(d[49]), way(d[50]), way(d[51]), way(d[52]), way(d[53]), way(d[54]), way(d[55]), way(d[56]),    \
                   way(d[57]), way(d[58]), way(d[59]), way(d[60]), way(d[61]), way(d[62]), way(d[63])                 \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_192_(name, type, way, kind, tail)                                                             \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n192k" kind " "                                                     \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "\
                 "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, "\
                 "%68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "\
                 "%90, %91, %92, %93, %94, %95}, "                                                                    \
                 "%96, %97, p" tail ";\n}\n"                                                                          \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31]), way(d[32]),    \
                   way(d[33]), way(d[34]), way(d[35]), way(d[36]), way(d[37]), way(d[38]), way(d[39]), way(d[40]),    \
                   way(d[41]), way(d[42]), way(d[43]), way(d[44]), way(d[45]), way(d[46]), way(d[47]), way(d[48]),    \
                   way(d[49]), way(d[50]), way(d[51]), way(d[52]), way(d[53]), way(d[54]), way(d[55]), way(d[56]),    \
                   way(d[57]), way(d[58]), way(d[59]), way(d[60]), way(d[61]), way(d[62]), way(d[63]), way(d[64]),    \
                   way(d[65]), way(d[66]), way(d[67]), way(d[68]), way(d[69]), way(d[70]), way(d[71]), way(d[72]),    \
                   way(d[73]), way(d[74]), way(d[75]), way(d[76]), way(d[77]), way(d[78]), way(d[79]), way(d[80]),    \
                   way(d[81]), way(d[82]), way(d[83]), way(d[84]), way(d[85]), way(d[86]), way(d[87]), way(d[88]),    \
                   way(d[89]), way(d[90]), way(d[91]), way(d[92]), way(d[93]), way(d[94]), way(d[95])                 \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

#define HN_DEFINE_WGMMA_256_(name, type, way, kind, tail)                                                             \
  HN_FN void name(type *d, u64 a, u64 b, u32 accumulate) {                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n256k" kind " "                                                     \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "\
                 "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, "\
                 "%68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "\
                 "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "\
                 "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "\
                 "%128, %129, p" tail ";\n}\n"                                                                        \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31]), way(d[32]),    \
                   way(d[33]), way(d[34]), way(d[35]), way(d[36]), way(d[37]), way(d[38]), way(d[39]), way(d[40]),    \
                   way(d[41]), way(d[42]), way(d[43]), way(d[44]), way(d[45]), way(d[46]), way(d[47]), way(d[48]),    \
                   way(d[49]), way(d[50]), way(d[51]), way(d[52]), way(d[53]), way(d[54]), way(d[55]), way(d[56]),    \
                   way(d[57]), way(d[58]), way(d[59]), way(d[60]), way(d[61]), way(d[62]), way(d[63]), way(d[64]),    \
                   way(d[65]), way(d[66]), way(d[67]), way(d[68]), way(d[69]), way(d[70]), way(d[71]), way(d[72]),    \
                   way(d[73]), way(d[74]), way(d[75]), way(d[76]), way(d[77]), way(d[78]), way(d[79]), way(d[80]),    \
                   way(d[81]), way(d[82]), way(d[83]), way(d[84]), way(d[85]), way(d[86]), way(d[87]), way(d[88]),    \
                   way(d[89]), way(d[90]), way(d[91]), way(d[92]), way(d[93]), way(d[94]), way(d[95]), way(d[96]),    \
                   way(d[97]), way(d[98]), way(d[99]), way(d[100]), way(d[101]), way(d[102]), way(d[103]), way(d[104]),\
                   way(d[105]), way(d[106]), way(d[107]), way(d[108]), way(d[109]), way(d[110]), way(d[111]),         \
                   way(d[112]), way(d[113]), way(d[114]), way(d[115]), way(d[116]), way(d[117]), way(d[118]),         \
                   way(d[119]), way(d[120]), way(d[121]), way(d[122]), way(d[123]), way(d[124]), way(d[125]),         \
                   way(d[126]), way(d[127])                                                                           \
                 : "l"(a), "l"(b), "r"(accumulate));                                                                  \
  }

/* The same by type: HN_DEFINE_WGMMA_n of f16 and bf16 with f32 sums, HN_DEFINE_WGMMA_CODES_n of codes with i32 sums. */
#define HN_DEFINE_WGMMA_16(name, types) HN_DEFINE_WGMMA_16_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_32(name, types) HN_DEFINE_WGMMA_32_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_64(name, types) HN_DEFINE_WGMMA_64_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_96(name, types) HN_DEFINE_WGMMA_96_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_128(name, types) HN_DEFINE_WGMMA_128_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_192(name, types) HN_DEFINE_WGMMA_192_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_256(name, types) HN_DEFINE_WGMMA_256_(name, float, "+f", "16.f32." types, ", 1, 1, 0, 0")
#define HN_DEFINE_WGMMA_CODES_32(name, types) HN_DEFINE_WGMMA_32_(name, i32, "+r", "32.s32." types, "")
#define HN_DEFINE_WGMMA_CODES_64(name, types) HN_DEFINE_WGMMA_64_(name, i32, "+r", "32.s32." types, "")
#define HN_DEFINE_WGMMA_CODES_128(name, types) HN_DEFINE_WGMMA_128_(name, i32, "+r", "32.s32." types, "")
#define HN_DEFINE_WGMMA_CODES_256(name, types) HN_DEFINE_WGMMA_256_(name, i32, "+r", "32.s32." types, "")

/* The same with A[64][16] in registers: as D lies there, two columns a word (rows r and r + 8, then the same eight
 * columns further). Two functions: name_first(float d[32], const u32 a[4], u64 b) has D = A B, and nothing before it
 * keeps d alive; name(d, a, b) adds. */
#define HN_DEFINE_WGMMA_REGISTERS_64(name, types)                                                                     \
  HN_DEFINE_WGMMA_REGISTERS_64_(name, types, "+f", "1")                                                               \
  HN_DEFINE_WGMMA_REGISTERS_64_(name##_first, types, "=f", "0")
#define HN_DEFINE_WGMMA_REGISTERS_64_(name, types, way, add)                                                          \
  HN_FN void name(float *d, const u32 *a, u64 b) {                                                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add ", 0;\n"                                                     \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." types " "                                              \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "\
                 "%24, %25, %26, %27, %28, %29, %30, %31}, "                                                          \
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"                                                        \
                 : way(d[0]), way(d[1]), way(d[2]), way(d[3]), way(d[4]), way(d[5]), way(d[6]), way(d[7]), way(d[8]), \
                   way(d[9]), way(d[10]), way(d[11]), way(d[12]), way(d[13]), way(d[14]), way(d[15]), way(d[16]),     \
                   way(d[17]), way(d[18]), way(d[19]), way(d[20]), way(d[21]), way(d[22]), way(d[23]), way(d[24]),    \
                   way(d[25]), way(d[26]), way(d[27]), way(d[28]), way(d[29]), way(d[30]), way(d[31])                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                               \
  }

#endif
