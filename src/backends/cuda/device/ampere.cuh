/* Instructions of architecture 80 and up behind what prelude.cuh declares. Included by prelude.cuh alone. */
#ifndef HN_AMPERE_CUH
#define HN_AMPERE_CUH

HN_FN u32 hn_to_f16x2(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
HN_FN u16 hn_to_bf16(float f) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
HN_FN u32 hn_to_bf16x2(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

HN_FN float hn_max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
HN_FN float hn_min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
HN_FN u32 hn_max_f16x2(u32 a, u32 b) {
  u32 r;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
HN_FN u32 hn_sub_f16x2(u32 a, u32 b) {
  u32 r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
HN_FN u32 hn_sub_bf16x2(u32 a, u32 b) { /* sub.bf16x2 is architecture 90's */
  u32 r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3f803f80u), "r"(b ^ 0x80008000u));
  return r;
}
HN_FN u32 hn_max_bf16x2(u32 a, u32 b) {
  u32 r;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

HN_FN void hn_cp_async16(void *to, const void *from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(hn_shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
HN_FN void hn_cp_async8(void *to, const void *from, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(hn_shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
HN_FN void hn_cp_async4(void *to, const void *from, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(hn_shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
HN_FN void hn_cp_async_commit(void) { asm volatile("cp.async.commit_group;" : : : "memory"); }
#define HN_CP_ASYNC_WAIT(pending) asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory")

HN_FN void hn_mma_f16(float d[4], const u32 a[4], const u32 b[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
HN_FN void hn_mma_bf16(float d[4], const u32 a[4], const u32 b[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
HN_FN u32 hn_to_tf32(float f) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(f));
  return r;
}
HN_FN void hn_mma_tf32(float d[4], const u32 a[4], const u32 b[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

HN_FN void hn_mma_u8(i32 d[4], const u32 a[4], const u32 b[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
HN_FN void hn_mma_i8(i32 d[4], const u32 a[4], const u32 b[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
