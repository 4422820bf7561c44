/* Pairs of 16-bit elements, by type: HN_PACK_*(low, high), and eight elements of four pairs. */
#ifndef HN_PAIRS_CUH
#define HN_PAIRS_CUH

#include "prelude.cuh"

HN_FN void unpack_f16(const u32 v[4], float x[8]) {
  HN_UNROLL for (i32 k = 0; k < 4; k++) x[2 * k] = hn_f16((u16)v[k]), x[2 * k + 1] = hn_f16((u16)(v[k] >> 16));
}
HN_FN void unpack_bf16(const u32 v[4], float x[8]) {
  HN_UNROLL for (i32 k = 0; k < 4; k++) x[2 * k] = hn_from_bits(v[k] << 16), x[2 * k + 1] = hn_from_bits(v[k] & 0xffff0000u);
}
#define HN_PACK_f16 hn_to_f16x2
#define HN_PACK_bf16 hn_to_bf16x2
#define HN_PACK_f32(low, high) 0

#endif
