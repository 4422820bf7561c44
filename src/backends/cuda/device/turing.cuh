/* What ampere.cuh has instructions for, on architecture 75 (Turing: T4, RTX 20). Same arguments, same results. Of its tensor cores there are m16n8k8 for f16 and m8n8k16 for codes, none for bf16 and
 * tf32: tactics that want those refuse such a machine (hn_cuda_tensor_cores). Included by prelude.cuh alone. */
#ifndef HN_TURING_CUH
#define HN_TURING_CUH

HN_FN u32 hn_to_f16x2(float low, float high) { return (u32)hn_to_f16(low) | (u32)hn_to_f16(high) << 16; }
HN_FN u16 hn_to_bf16(float f) { /* nearest, ties to even */
  const u32 u = __float_as_uint(f);
  return f != f ? 0x7fff : (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
HN_FN u32 hn_to_bf16x2(float low, float high) { return (u32)hn_to_bf16(low) | (u32)hn_to_bf16(high) << 16; }

/* max.f32 and min.f32 order zeros as the instructions with .NaN do: -0 is below +0. */
HN_FN float hn_max_nan(float a, float b) { return a != a || b != b ? NAN : fmaxf(a, b); }
HN_FN float hn_min_nan(float a, float b) { return a != a || b != b ? NAN : fminf(a, b); }
HN_FN u32 hn_max_f16x2(u32 a, u32 b) {
  return hn_to_f16x2(hn_max_nan(hn_f16((u16)a), hn_f16((u16)b)),
                     hn_max_nan(hn_f16((u16)(a >> 16)), hn_f16((u16)(b >> 16))));
}
HN_FN u32 hn_sub_f16x2(u32 a, u32 b) {
  u32 r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
HN_FN u32 hn_sub_bf16x2(u32 a, u32 b) {
  return hn_to_bf16x2(hn_bf16((u16)a) - hn_bf16((u16)b), hn_bf16((u16)(a >> 16)) - hn_bf16((u16)(b >> 16)));
}
HN_FN u32 hn_max_bf16x2(u32 a, u32 b) {
  return hn_to_bf16x2(hn_max_nan(hn_bf16((u16)a), hn_bf16((u16)b)),
                      hn_max_nan(hn_bf16((u16)(a >> 16)), hn_bf16((u16)(b >> 16))));
}

/* Through registers, at once: who waits for the copy waits for nothing. `bytes` is a multiple of the elements' size,
 * and the memory behind them may be nobody's. */
HN_FN void hn_copy_words(void *to, const void *from, u32 bytes, int words) {
  HN_UNROLL for (int i = 0; i < words; i++) {
    u32 w = 0;
    if (bytes >= 4u * i + 4)
      w = ((const u32 *)from)[i];
    else
      for (u32 b = 4 * i; b < bytes; b++) w |= (u32)((const u8 *)from)[b] << 8 * (b & 3);
    ((u32 *)to)[i] = w;
  }
}
HN_FN void hn_cp_async16(void *to, const void *from, u32 bytes) {
  if (bytes == 16)
    *(hn_u4 *)to = hn_ld16(from);
  else
    hn_copy_words(to, from, bytes, 4);
}
HN_FN void hn_cp_async8(void *to, const void *from, u32 bytes) { hn_copy_words(to, from, bytes, 2); }
HN_FN void hn_cp_async4(void *to, const void *from, u32 bytes) { hn_copy_words(to, from, bytes, 1); }
HN_FN void hn_cp_async_commit(void) {}
#define HN_CP_ASYNC_WAIT(pending) ((void)0)

/* The halves of K one after the other: a[0], a[1], b[0] are the first, a[2], a[3], b[1] the second. */
HN_FN void hn_mma_f16(float d[4], const u32 a[4], const u32 b[2]) {
  HN_UNROLL for (int k = 0; k < 2; k++)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
}
/* The same with eight rows at a time: d[0], d[1] belong to the rows of a[0] and a[2]. */
#define HN_MMA_M8N8K16(d, a, b, types)                                                                        \
  HN_UNROLL for (int i = 0; i < 4; i++)                                                                       \
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0,%1}, {%2}, {%3}, {%0,%1};"            \
                 : "+r"((d)[i % 2 * 2]), "+r"((d)[i % 2 * 2 + 1]) : "r"((a)[i]), "r"((b)[i / 2]))
HN_FN void hn_mma_u8(i32 d[4], const u32 a[4], const u32 b[2]) { HN_MMA_M8N8K16(d, a, b, "u8.s8"); }
HN_FN void hn_mma_i8(i32 d[4], const u32 a[4], const u32 b[2]) { HN_MMA_M8N8K16(d, a, b, "s8.s8"); }

#endif
