/* How warpgroup products of f16 and bf16 end: the generated epilogue, on fragments as they lie in registers. */
#ifndef HN_WGMMA_FLOATS_CUH
#define HN_WGMMA_FLOATS_CUH

#include "fragment_vectors.cuh"
#include "wgmma.cuh"

#define HN_KEPT (HN_SPLIT ? 0 : HN_EPILOGUE_VECTORS) /* of a warpgroup, in shared memory while a tile ends */
enum { PANEL = 64 }; /* columns of 128 bytes */

/* A warp's rows of a warpgroup's sums, as they are to be read eight columns at a time; quarter: the thread's of four. */
HN_FN void put_partial(u32 to, u32 quarter, const float *d) {
  to += quarter * 8;
  HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j++) {
    hn_shared_st8(to + j * 32, hn_bits(d[4 * j]), hn_bits(d[4 * j + 1]));
    hn_shared_st8(to + j * 32 + 8 * PARTIAL_ROW, hn_bits(d[4 * j + 2]), hn_bits(d[4 * j + 3]));
  }
}

/* Applies the epilogue to eight channels of a pixel and stores them. */
HN_FN void finish(const hn_conv_wgmma_args *g, float x[8], i32 pixel, i32 channel) {
  if (pixel >= g->pixels || channel >= g->columns) return;
  i64 at = (i64)pixel * g->y_pixel + channel;
  hn_epilogue8(x, channel, at, &g->epilogue);
  HN_PASTE(hn_store8_, HN_OUT)(g->y, at, x);
}

#if !HN_SPLIT
/* A warpgroup's vectors on their way into shared memory, each thread's part of them. */
typedef struct vectors {
  float part[HN_EPILOGUE_VECTORS + 1][4];
} vectors;
HN_FN void ask_vectors(const hn_conv_wgmma_args *g, vectors *v, i32 column0, u32 t) {
  if (t < HN_BN / 4) hn_epilogue_fragment_vectors(v->part, column0 + column_of_quarter(t), &g->epilogue);
}
HN_FN void keep_vectors(vectors *v, u32 to, u32 t) {
  if (t < HN_BN / 4) put_vectors(v->part, HN_EPILOGUE_VECTORS, to, HN_BN * 4, t);
}

#ifdef HN_ADDED
/* Sixteens of columns whose part of the added tensor is on its way together: as many as registers hold. */
enum { AHEAD = HN_WM == 2 ? 2 : HN_GROUPS == 3 ? 4 : HN_BN / 16 };
HN_FN void ask_added(const hn_conv_wgmma_args *g, float to[AHEAD][HN_WM][8], i32 row0, i32 column0, u32 warp, u32 lane) {
  HN_UNROLL for (u32 i = 0; i < AHEAD; i++) {
    HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
      HN_UNROLL for (i32 k = 0; k < 4; k++) {
        const i32 pixel = row0 + (i32)(m * 64 + warp * 16 + lane / 4) + (k & 1) * 8,
                  channel = column0 + (i32)(i * 16 + 2 * (lane & 3)) + k / 2 * 8;
        const u64 two = pixel < g->pixels && channel < g->columns
                            ? *(const u64 *)((const float *)g->epilogue.in[HN_ADDED] + (i64)pixel * g->y_pixel + channel)
                            : 0;
        to[i][m][2 * k] = hn_from_bits((u32)two), to[i][m][2 * k + 1] = hn_from_bits((u32)(two >> 32));
      }
    }
  }
}
#endif

/* Of a tile: into shared memory, or to where it belongs. What is read of 32 columns is on its way together. */
HN_FN void finish_tile(const hn_conv_wgmma_args *g, float (*d)[HN_BN / 2], u32 staging, u32 kept, i32 row0, i32 column0,
                       u32 warp, u32 lane) {
  const u32 row = warp * 16 + (lane & 15);
#ifdef HN_ADDED
  float ahead[AHEAD][HN_WM][8];
#endif
  HN_UNROLL for (u32 j = 0; j < HN_BN / 8; j += 4) {
#ifdef HN_ADDED
    if (j / 2 % AHEAD == 0) ask_added(g, ahead, row0, column0 + (i32)j * 8, warp, lane);
#endif
    float vectors[2][HN_EPILOGUE_VECTORS + 1][4];
    u32 panel[2];
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      const u32 eight = j + 2 * i;
      get_vectors(vectors[i], HN_EPILOGUE_VECTORS, kept, HN_BN * 4, eight * 2 + (lane & 3));
      panel[i] = staging + eight / 8 * (GROUP_ROWS * 128) + row * 128 + ((((eight & 7) + lane / 16) ^ (row & 7)) << 4);
    }
#if HN_STAGED
    hn_u4 added[2][HN_WM];
    HN_UNROLL for (u32 i = 0; i < 2; i++)
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) added[i][m] = hn_matrix_load(panel[i] + m * 64 * 128);
#endif
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      const i32 channel = column0 + (i32)((j + 2 * i) * 8 + 2 * (lane & 3));
      HN_UNROLL for (u32 m = 0; m < HN_WM; m++) {
        float x[8], other[8];
        HN_UNROLL for (u32 k = 0; k < 8; k++) x[k] = d[m][(j + 2 * i) * 4 + k];
        const i32 pixel = row0 + (i32)(m * 64 + warp * 16 + lane / 4), rows = pixel + 8 < g->pixels ? 2 : pixel < g->pixels;
        const i64 at = (i64)pixel * g->y_pixel + channel, down = 8 * (i64)g->y_pixel;
#if HN_STAGED
        HN_PASTE(unpack_, HN_T)(added[i][m].v, other);
#endif
#ifdef HN_ADDED
        HN_UNROLL for (u32 k = 0; k < 8; k++) other[k] = ahead[(j / 2 + i) % AHEAD][m][k];
#endif
        hn_epilogue_fragment(x, vectors[i], other, channel, at, down, rows, &g->epilogue);
#if HN_STORE_STAGED
        hn_u4 v;
        HN_UNROLL for (i32 k = 0; k < 4; k++) v.v[k] = HN_PASTE(HN_PACK_, HN_OUT)(x[2 * k], x[2 * k + 1]);
        hn_matrix_store(panel[i] + m * 64 * 128, v);
#else
        HN_UNROLL for (i32 k = 0; k < 4; k++)
          if ((k & 1) < rows && channel + k / 2 * 8 < g->columns)
            *(u64 *)((float *)g->y + at + k / 2 * 8 + (k & 1 ? down : 0)) = (u64)hn_bits(x[2 * k]) | (u64)hn_bits(x[2 * k + 1]) << 32;
#endif
      }
    }
  }
}
#endif

#endif
