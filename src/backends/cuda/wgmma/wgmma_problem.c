#include "backends/cuda/wgmma/wgmma_problem.h"

#include <string.h>

#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/cuda/wgmma/tensor_map.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/mem.h"

/* What the copy engine's im2col mode can express: corners and taps in 8 bits, strides up to 8. */
static bool im2col_fits(const hn_product_args *g) {
  const int64_t wide = (int64_t)(g->kernel_x - 1) * g->dilation_x,
                high = (int64_t)(g->kernel_y - 1) * g->dilation_y;
  const int64_t right = (int64_t)(g->grid_x - 1) * g->stride_x - g->pad_x - g->in_x + 1,
                below = (int64_t)(g->grid_y - 1) * g->stride_y - g->pad_y - g->in_y + 1;
  return g->stride_x <= 8 && g->stride_y <= 8 && wide <= 255 && high <= 255 && g->pad_x >= -127 &&
         g->pad_x <= 128 && g->pad_y >= -127 && g->pad_y <= 128 && right >= -128 && right <= 127 &&
         below >= -128 && below <= 127;
}

/* Elements of a block of K, and of 16 bytes. */
static uint32_t block_of(const hn_wgmma_problem *q) {
  return HN_WGMMA_BLOCK_BYTES / (uint32_t)hone_dtype_size(q->p.a_type);
}

static uint32_t blocks_of(const hn_wgmma_problem *q, uint32_t unit) {
  return hn_div_up(q->taps * hn_div_up(q->p.args.tap, unit), block_of(q) / unit);
}

static void choose_mode(hn_wgmma_problem *q) {
  const hn_product_args *g = &q->p.args;
  q->taps = (uint32_t)(g->kernel_x * g->kernel_y);
  q->mode = HN_WGMMA_MATRIX, q->unit = block_of(q);
  const bool whole = q->p.one_tap && g->stride_x == 1 && g->stride_y == 1 &&
                     (!q->p.conv || (g->grid_x == (uint32_t)g->in_x && g->grid_y == (uint32_t)g->in_y &&
                                     g->image == (int64_t)g->in_x * g->in_y * g->pixel));
  if (!whole) {
    q->mode = HN_WGMMA_IM2COL;
    const uint32_t least = block_of(q) / 4; /* 32 bytes */
    while (q->unit > least && blocks_of(q, q->unit / 2) < blocks_of(q, q->unit)) q->unit /= 2;
    /* The copy engine writes zeros where a tap lies outside of the image. */
    if (g->tap < least || !im2col_fits(g) || (q->outside && !q->mended && !q->p.one_tap))
      q->mode = HN_WGMMA_GATHER, q->unit = q->p.chunk;
  }
  q->units = hn_div_up(g->tap, q->unit);
  q->k_blocks = blocks_of(q, q->unit);
}

bool hn_wgmma_read(const hone_step *s, const hone_machine *m, hn_wgmma_problem *q, hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_product_of(s, &q->p, why)) return false;
  if (q->p.a_type != HONE_DTYPE_F16 && q->p.a_type != HONE_DTYPE_BF16)
    return hn_refuse(why, "the input is %s", hone_dtype_name(q->p.a_type));
  if (q->p.out_type != q->p.a_type && q->p.out_type != HONE_DTYPE_F32)
    return hn_refuse(why, "the output is %s", hone_dtype_name(q->p.out_type));
  return hn_wgmma_fits(q, why);
}

bool hn_wgmma_fits(hn_wgmma_problem *q, hone_reason *why) {
  const hn_product_args *g = &q->p.args;
  const uint32_t least = q->p.codes ? 16 : 8; /* columns that are stored together */
  if (!q->p.constant) return hn_refuse(why, "weights are not constant");
  if (q->p.c_type != HONE_DTYPE_NONE) return hn_refuse(why, "C is no row");
  for (uint32_t i = 0; i < g->n_batch; i++)
    if (g->batch[i] != 1) return hn_refuse(why, "several products");
  if (g->in_z != 1 || g->kernel_z != 1 || g->grid_z != 1 || g->pad_z != 0)
    return hn_refuse(why, "three spatial dimensions");
  if (!q->p.a_chunks) return hn_refuse(why, "rows of the input are not whole 16s of bytes");
  if (q->p.store != 8 || g->out_pitch % least)
    return hn_refuse(why, "rows of the output are not whole 16s of bytes");
  if (g->m == 0 || (uint64_t)g->m * (uint64_t)g->out_pitch >> 40 || g->n > 1 << 20 || g->tap > 1 << 20)
    return hn_refuse(why, "sizes beyond the copy engine's");
  q->columns = (uint32_t)hn_round_up(g->n, least);
  if (g->n % least && g->out_pitch != q->columns)
    return hn_refuse(why, "part of a wider tensor, not in whole 16s of bytes");
  q->n16 = (uint32_t)hn_round_up(g->n, 16);
  choose_mode(q);
  if (q->mode == HN_WGMMA_GATHER &&
      (q->k_blocks > 512 || g->image * (int64_t)hone_dtype_size(q->p.a_type) > INT32_MAX))
    return hn_refuse(why, "too many taps and channels, or an image too large, to be gathered");
  return true;
}

double hn_wgmma_unread(const hone_step *s, const hn_wgmma_problem *q) {
  const hn_product_args *g = &q->p.args;
  double read = 1;
  if (g->kernel_x < g->stride_x) read *= (double)g->kernel_x / g->stride_x;
  if (g->kernel_y < g->stride_y) read *= (double)g->kernel_y / g->stride_y;
  return (1 - read) * (double)hone_desc_bytes(&s->input[0].desc);
}

/* Byte `at` of column n, of K as it lies there; the 16 bytes number c of row r stand at c ^ r. */
static char *place(void *blob, uint32_t n8, uint32_t n, size_t at) {
  const uint32_t in = at % HN_WGMMA_BLOCK_BYTES;
  const size_t tile = at / HN_WGMMA_BLOCK_BYTES * n8 + n / 8;
  return (char *)blob + tile * 1024 + n % 8 * 128 + ((in / 16 ^ n % 8) << 4) + in % 16;
}

/* Where a column of codes stands among its sixteen: where a thread's sums lie, four channels follow each
 * other (device/wgmma_codes.cuh), or two (device/turned_codes.cuh). */
static uint32_t exchanged(uint32_t n, bool pairs) {
  const uint32_t in = pairs ? 8 * (n & 1) + (n >> 1 & 7) : 8 * (n >> 1 & 1) + 2 * (n >> 2 & 3) + (n & 1);
  return (n & ~15u) + in;
}

/* Elements k and up of column n, of one 16 bytes. */
static void put(const hn_wgmma_problem *q, void *blob, uint32_t n8, uint32_t n, uint32_t k, const float *w,
                uint32_t count) {
  const hone_dtype type = q->p.a_type;
  uint16_t h[8];
  int8_t codes[16];
  if (type == HONE_DTYPE_F16 || type == HONE_DTYPE_BF16) {
    for (uint32_t i = 0; i < count; i++)
      h[i] = type == HONE_DTYPE_F16 ? hn_f32_to_f16(w[i]) : hn_f32_to_bf16(w[i]);
    memcpy(place(blob, n8, n, (size_t)k * 2), h, count * sizeof *h);
  } else {
    for (uint32_t i = 0; i < count; i++) codes[i] = (int8_t)w[i];
    memcpy(place(blob, n8, exchanged(n, q->pairs), k), codes, count);
  }
}

static hn_cuda_weights weights_of(const hone_step *s, const hn_wgmma_problem *q) {
  const hn_product_args *g = &q->p.args;
  return (hn_cuda_weights){.from = &s->input[1],
                           .by_column = g->b_col,
                           .by_tap = g->b_tap,
                           .by_channel = g->b_row,
                           .columns = g->n,
                           .taps = q->taps,
                           .channels = g->channels};
}

/* The next channels of a line, up to `most`: those of one 16 bytes, which begin at whole ones. */
static uint32_t some(const hn_wgmma_problem *q, uint32_t at, uint32_t most) {
  const uint32_t chunk = 16 / (uint32_t)hone_dtype_size(q->p.a_type), left = chunk - at % chunk;
  return most < left ? most : left;
}

static void scale(hn_cuda_weights_tile *t, float alpha) {
  for (uint32_t n = 0; n < t->columns; n++)
    for (uint32_t c = 0; c < t->channels; c++) t->w[n][c] *= alpha;
}

void hn_wgmma_pack(const hone_step *s, const hn_wgmma_problem *q, uint32_t n8, void *blob) {
  for (hn_cuda_weights_tile t = {.all = weights_of(s, q)}; hn_cuda_weights_next(&t);) {
    scale(&t, q->p.args.alpha);
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t c = 0, count; c < t.channels; c += count) {
        count = some(q, c, t.channels - c);
        put(q, blob, n8, t.column + n, t.tap * q->units * q->unit + t.channel + c, &t.w[n][c], count);
      }
  }
}

size_t hn_wgmma_shared_weights(const hn_wgmma_problem *q, uint64_t *key) {
  const int64_t of[] = {q->p.a_type, q->parts, q->unit, q->units, q->taps, q->k_blocks, q->n16};
  return hn_cuda_shared_blob("blocks of 128 bytes", of, sizeof of / sizeof *of, key);
}

void hn_wgmma_pack_parts(const hone_step *s, const hn_wgmma_problem *q, uint32_t n8, void *blob) {
  for (hn_cuda_weights_tile t = {.all = weights_of(s, q)}; hn_cuda_weights_next(&t);)
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t c = 0; c < t.channels; c++) {
        float w = q->p.args.alpha * t.w[n][c];
        const size_t at = ((size_t)t.tap * q->units * q->unit + t.channel + c) * sizeof w,
                     block = at / HN_WGMMA_BLOCK_BYTES;
        for (uint32_t part = 0; part < q->parts; part++) { /* the second is what the first one lacks */
          const float rounded = hn_product_to_tf32(w);
          char *tiles = (char *)blob + (block * q->parts + part) * n8 * 1024;
          memcpy(place(tiles, n8, t.column + n, at % HN_WGMMA_BLOCK_BYTES), &rounded, sizeof rounded);
          w -= rounded;
        }
      }
}

void hn_wgmma_pack_pieces(const hone_step *s, const hn_wgmma_problem *q, uint32_t columns, uint32_t blocks,
                          void *blob) {
  const size_t piece = (size_t)columns * blocks * HN_WGMMA_BLOCK_BYTES;
  for (hn_cuda_weights_tile t = {.all = weights_of(s, q)}; hn_cuda_weights_next(&t);) {
    scale(&t, q->p.args.alpha);
    for (uint32_t i = 0; i < t.columns; i++) {
      const uint32_t n = t.column + i;
      for (uint32_t c = 0, count; c < t.channels; c += count) {
        count = some(q, c, t.channels - c);
        put(q, (char *)blob + n / columns * piece, columns / 8, n % columns, t.channel + c, &t.w[i][c],
            count);
      }
    }
  }
}

void hn_wgmma_pack_channels(const hone_step *s, const hn_wgmma_problem *q, uint32_t columns,
                            uint32_t channels, void *blob) {
  const size_t block = (size_t)columns * HN_WGMMA_BLOCK_BYTES;
  for (hn_cuda_weights_tile t = {.all = weights_of(s, q)}; hn_cuda_weights_next(&t);) {
    scale(&t, q->p.args.alpha);
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t i = 0, count; i < t.channels; i += count) {
        const uint32_t c = t.channel + i, in = c % channels, left = channels - in;
        count = some(q, in, left < t.channels - i ? left : t.channels - i);
        put(q, (char *)blob + c / channels * block, columns / 8, t.column + n, in, &t.w[n][i], count);
      }
  }
}

hone_status hn_wgmma_map_a(hn_cuda_queue *queue, const hn_wgmma_problem *q, const void *x, uint32_t rows,
                           hn_map_words *map, hone_error *error) {
  const hn_product_args *g = &q->p.args;
  if (q->mode == HN_WGMMA_MATRIX)
    return hn_cuda_map_matrix(queue, map, q->p.a_type, x, g->tap, g->m, g->pixel, block_of(q), rows, error);
  const hn_cuda_im2col c = {
      .channels = g->tap,
      .w = (uint32_t)g->in_x,
      .h = (uint32_t)g->in_y,
      .n = g->m / (g->grid_x * g->grid_y),
      .pixel = g->pixel,
      .image = g->image,
      .first = {-g->pad_x, -g->pad_y},
      .last = {(g->grid_x - 1) * g->stride_x - g->pad_x, (int64_t)(g->grid_y - 1) * g->stride_y - g->pad_y},
      .stride = {g->stride_x, g->stride_y},
      .unit = q->unit,
      .rows = rows};
  return hn_cuda_map_im2col(queue, map, q->p.a_type, x, &c, error);
}

void hn_wgmma_args(const hn_wgmma_problem *q, const void *x, hn_conv_wgmma_args *a) {
  const hn_product_args *g = &q->p.args;
  a->x = x;
  a->image = g->image;
  a->pixels = (i32)g->m, a->columns = (i32)q->columns, a->y_pixel = (i32)g->out_pitch;
  a->n = (i32)g->n, a->n8 = (i32)(q->n16 / 8), a->k_blocks = (i32)q->k_blocks;
  a->tiles = (i32)q->tiles;
  a->h = g->in_y, a->w = g->in_x, a->oh = (i32)g->grid_y, a->ow = (i32)g->grid_x;
  a->kw = g->kernel_x, a->taps = (i32)q->taps;
  a->cin = (i32)g->tap, a->pixel = (i32)g->pixel;
  a->stride_h = g->stride_y, a->stride_w = g->stride_x, a->pad_h = g->pad_y, a->pad_w = g->pad_x;
  a->dilation_h = g->dilation_y, a->dilation_w = g->dilation_x;
}
