/* Vectors of an epilogue in shared memory, as fragments of tensor cores want them: of every sixteen columns four 16s of
 * bytes, each what one thread of a quad reads. From there they come at once, whatever channels exist. */
#ifndef HN_FRAGMENT_VECTORS_CUH
#define HN_FRAGMENT_VECTORS_CUH

#include "hopper.cuh"

/* The columns that quarter `quarter` (of sixteen columns, counted on) begins with, as hn_epilogue_fragment_vectors wants
 * them. */
HN_FN i32 column_of_quarter(u32 quarter) { return (i32)(quarter / 4 * 16 + quarter % 4 * 2); }

/* n vectors, `pitch` bytes apart. */
HN_FN void put_vectors(float (*u)[4], u32 n, u32 to, u32 pitch, u32 quarter) {
  HN_UNROLL for (u32 k = 0; k < n; k++) {
    const hn_u4 v = {{hn_bits(u[k][0]), hn_bits(u[k][1]), hn_bits(u[k][2]), hn_bits(u[k][3])}};
    hn_shared_st16(to + k * pitch + quarter * 16, v);
  }
}
HN_FN void get_vectors(float (*u)[4], u32 n, u32 from, u32 pitch, u32 quarter) {
  HN_UNROLL for (u32 k = 0; k < n; k++) {
    const hn_u4 v = hn_shared_ld16(from + k * pitch + quarter * 16);
    HN_UNROLL for (u32 i = 0; i < 4; i++) u[k][i] = hn_from_bits(v.v[i]);
  }
}

#endif
