/* Transposes through shared memory, converting on the way. Prefix:
 *   HN_FROM, HN_TO              element types (device/elements.cuh), HN_FROM_SIZE, HN_TO_SIZE their bytes
 *   HN_ROWS, HN_COLS            of a tile
 *   HN_LOAD, HN_STORE           elements of a vector on either side, 1 where addresses are odd
 * Rows of the tile have an odd number of 32-bit words, so that neither side meets bank conflicts worth
 * naming; elements below 32 bits are packed when they enter. */
#include "elements.cuh"
#include "divide.cuh"
#include "moves_args.h"

#if HN_TO_SIZE >= 4
#define HN_PER_WORD 1
#else
#define HN_PER_WORD (4 / HN_TO_SIZE)
#endif
#define HN_PITCH ((HN_COLS * HN_TO_SIZE + 3) / 4 + 1)
#define HN_IN (HN_LOAD > HN_PER_WORD ? HN_LOAD : HN_PER_WORD) /* elements that enter together */

HN_FN u32 hn_tile_bits(const u32 *tile, int r, int c, int half) {
#if HN_TO_SIZE == 8
  return tile[r * HN_PITCH + 2 * c + half];
#elif HN_TO_SIZE == 4
  return tile[r * HN_PITCH + c];
#else
  return tile[r * HN_PITCH + c / HN_PER_WORD] >> (8 * HN_TO_SIZE * (c % HN_PER_WORD));
#endif
}

HN_KERNEL_BOUNDS(tile, hn_tile_args, a, 256, 4) {
  HN_SHARED u32 tile[HN_ROWS * HN_PITCH];
  const u32 line = hn_quotient(blockIdx.x, &a.tiles_c);
  const int c0 = (int)(blockIdx.x - line * a.tiles_c.by) * HN_COLS;
  u32 outer = hn_quotient(line, &a.tiles_r);
  const int r0 = (int)(line - outer * a.tiles_r.by) * HN_ROWS;
  i64 from = 0, to = 0;
  HN_GRID_GO();
  for (int i = a.rank - 1; i >= 0; i--) {
    const u32 next = i ? hn_quotient(outer, &a.dim[i]) : 0, at = outer - next * a.dim[i].by;
    from += at * a.from_stride[i];
    to += at * a.to_stride[i];
    outer = next;
  }
  const char *source = (const char *)a.from + (from + r0 * a.from_row + c0) * HN_FROM_SIZE;
  char *target = (char *)a.to + (to + c0 * a.to_col + r0) * HN_TO_SIZE;
  HN_GRID_WAIT();
  HN_UNROLL for (int t = 0; t < HN_ROWS * HN_COLS / HN_IN / 256; t++) {
    const int i = t * 256 + (int)threadIdx.x, r = i / (HN_COLS / HN_IN), c = i % (HN_COLS / HN_IN) * HN_IN;
    u32 raw[(HN_IN * HN_FROM_SIZE + 3) / 4], w[(HN_IN * HN_TO_SIZE + 3) / 4];
    HN_PASTE(hn_value_, HN_TO) x[HN_IN];
    const int left = r0 + r < (int)a.rows ? (int)a.cols - c0 - c : 0;
    if (HN_LOAD > 1 && left >= HN_IN)
      hn_ld_words(raw, source + (r * a.from_row + c) * HN_FROM_SIZE, HN_IN * HN_FROM_SIZE);
    else
      hn_ld_some(raw, source + (r * a.from_row + c) * HN_FROM_SIZE, HN_FROM_SIZE, HN_IN, left);
    HN_UNROLL for (int k = 0; k < HN_IN; k++) x[k] = HN_PASTE(hn_word_, HN_FROM)(raw, k);
    HN_PASTE(hn_pack_, HN_TO)(w, x, HN_IN);
    HN_UNROLL for (int k = 0; k < HN_IN * HN_TO_SIZE / 4; k++) tile[r * HN_PITCH + c * HN_TO_SIZE / 4 + k] = w[k];
  }
  HN_SYNC();
  HN_UNROLL for (int t = 0; t < HN_ROWS * HN_COLS / HN_STORE / 256; t++) {
    const int i = t * 256 + (int)threadIdx.x, c = i / (HN_ROWS / HN_STORE), r = i % (HN_ROWS / HN_STORE) * HN_STORE;
    u32 w[(HN_STORE * HN_TO_SIZE + 3) / 4];
    const int left = c0 + c < (int)a.cols ? (int)a.padded - r0 - r : 0;
    if (left <= 0) continue;
    hn_clear_words(w, HN_STORE * HN_TO_SIZE);
    HN_UNROLL for (int k = 0; k < HN_STORE; k++) {
#if HN_TO_SIZE == 8
      w[2 * k] = hn_tile_bits(tile, r + k, c, 0), w[2 * k + 1] = hn_tile_bits(tile, r + k, c, 1);
#elif HN_TO_SIZE == 4
      w[k] = hn_tile_bits(tile, r + k, c, 0);
#elif HN_TO_SIZE == 2
      w[k / 2] |= (hn_tile_bits(tile, r + k, c, 0) & 0xffffu) << (16 * (k % 2));
#else
      w[k / 4] |= (hn_tile_bits(tile, r + k, c, 0) & 0xffu) << (8 * (k % 4));
#endif
    }
    char *p = target + (c * a.to_col + r) * HN_TO_SIZE;
    if (left >= HN_STORE)
      hn_st_words(p, w, HN_STORE * HN_TO_SIZE);
    else
      hn_st_some(p, w, HN_TO_SIZE, HN_STORE, left);
  }
}
