/* What generated epilogues stand on: one to eight consecutive elements of a vector or of a tensor. */
#ifndef HN_EPILOGUE_CUH
#define HN_EPILOGUE_CUH

#include "math.cuh"
#include "epilogue_args.h"

/* `at` is a multiple of the width, the tensor starts at a multiple of 16 bytes. */
HN_FN void hn_load1_f32(const void *p, i64 at, float *x) { *x = hn_load_f32(p, at); }
HN_FN void hn_load1_f16(const void *p, i64 at, float *x) { *x = hn_load_f16(p, at); }
HN_FN void hn_load1_bf16(const void *p, i64 at, float *x) { *x = hn_load_bf16(p, at); }
HN_FN void hn_load2_f32(const void *p, i64 at, float x[2]) {
  u64 v = *(const u64 *)((const float *)p + at);
  x[0] = hn_from_bits((u32)v), x[1] = hn_from_bits((u32)(v >> 32));
}
HN_FN void hn_load2_f16(const void *p, i64 at, float x[2]) {
  u32 v = *(const u32 *)((const u16 *)p + at);
  x[0] = hn_f16((u16)v), x[1] = hn_f16((u16)(v >> 16));
}
HN_FN void hn_load2_bf16(const void *p, i64 at, float x[2]) {
  u32 v = *(const u32 *)((const u16 *)p + at);
  x[0] = hn_from_bits(v << 16), x[1] = hn_from_bits(v & 0xffff0000u);
}
HN_FN void hn_load4_f32(const void *p, i64 at, float x[4]) {
  hn_u4 v = hn_ld16((const float *)p + at);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_from_bits(v.v[k]);
}
HN_FN void hn_load4_f16(const void *p, i64 at, float x[4]) {
  u64 v = *(const u64 *)((const u16 *)p + at);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_f16((u16)(v >> (16 * k)));
}
HN_FN void hn_load4_bf16(const void *p, i64 at, float x[4]) {
  u64 v = *(const u64 *)((const u16 *)p + at);
  HN_UNROLL for (int k = 0; k < 4; k++) x[k] = hn_bf16((u16)(v >> (16 * k)));
}

#endif
