#include "backends/cuda/common/wgmma.h"

#include <string.h>

#include "backends/cuda/common/epilogue.h"
#include "backends/cuda/common/functions.h"
#include "backends/cuda/common/product.h"
#include "backends/cuda/common/tensor_map.h"
#include "backends/cuda/tactics/conv_wgmma_args.h"
#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"

enum { BLOCK = 64, THREADS = 384, MOST_SPLITS = 8 };

typedef enum a_mode { A_MATRIX, A_IM2COL, A_GATHER } a_mode; /* as in conv_wgmma.cu */

typedef struct problem {
  hn_product p;
  a_mode mode;
  uint32_t unit;          /* channels of a copy of A */
  uint32_t taps, units;   /* units: of a tap */
  uint32_t k_blocks, n16; /* n16: columns of the packed weights, in whole 16s */
  uint32_t columns;       /* of the output, channel padding included */
  int64_t tiles;
  uint32_t splits; /* blocks of a cluster */
} problem;

static uint32_t div_up(uint32_t a, uint32_t b) { return (uint32_t)(((uint64_t)a + b - 1) / b); }
static double max_of(double a, double b) { return a > b ? a : b; }

static uint32_t tile_rows(const hn_wgmma_tile *t) { return 64 * t->wm * (t->alternate || t->split ? 1 : 2); }

/* ------------------------------------------------------------------ reading the step */

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

static uint32_t blocks_of(uint32_t taps, uint32_t channels, uint32_t unit) {
  return div_up(taps * div_up(channels, unit), BLOCK / unit);
}

static void choose_mode(problem *q) {
  const hn_product_args *g = &q->p.args;
  q->taps = (uint32_t)(g->kernel_x * g->kernel_y);
  q->mode = A_MATRIX, q->unit = BLOCK;
  const bool whole = q->p.one_tap && g->stride_x == 1 && g->stride_y == 1 &&
                     (!q->p.conv || (g->grid_x == (uint32_t)g->in_x && g->grid_y == (uint32_t)g->in_y &&
                                     g->image == (int64_t)g->in_x * g->in_y * g->pixel));
  if (!whole) {
    q->mode = A_IM2COL;
    while (q->unit > 16 && blocks_of(q->taps, g->tap, q->unit / 2) < blocks_of(q->taps, g->tap, q->unit))
      q->unit /= 2;
    if (g->tap < 16 || !im2col_fits(g)) q->mode = A_GATHER, q->unit = 8;
  }
  q->units = div_up(g->tap, q->unit);
  q->k_blocks = blocks_of(q->taps, g->tap, q->unit);
}

static bool read_step(const hone_step *s, const hone_machine *m, problem *q, hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_product_of(s, &q->p, why)) return false;
  const hn_product_args *g = &q->p.args;
  if (q->p.a_type != HONE_DTYPE_F16 && q->p.a_type != HONE_DTYPE_BF16)
    return hn_refuse(why, "the input is %s", hone_dtype_name(q->p.a_type));
  if (q->p.out_type != q->p.a_type && q->p.out_type != HONE_DTYPE_F32)
    return hn_refuse(why, "the output is %s", hone_dtype_name(q->p.out_type));
  if (!q->p.constant) return hn_refuse(why, "weights are not constant");
  if (q->p.c_type != HONE_DTYPE_NONE) return hn_refuse(why, "C is no row");
  for (uint32_t i = 0; i < g->n_batch; i++)
    if (g->batch[i] != 1) return hn_refuse(why, "several products");
  if (g->in_z != 1 || g->kernel_z != 1 || g->grid_z != 1) return hn_refuse(why, "three spatial dimensions");
  if (!q->p.a_chunks) return hn_refuse(why, "rows of the input are not whole 16s of bytes");
  if (q->p.store != 8) return hn_refuse(why, "rows of the output are not whole eights");
  if (g->m == 0 || (uint64_t)g->m * (uint64_t)g->out_pitch >> 40 || g->n > 1 << 20 || g->tap > 1 << 20)
    return hn_refuse(why, "sizes beyond the copy engine's");
  q->columns = (uint32_t)hn_round_up(g->n, 8);
  if (g->n % 8 && g->out_pitch != q->columns)
    return hn_refuse(why, "part of a wider tensor, not in whole eights");
  q->n16 = (uint32_t)hn_round_up(g->n, 16);
  choose_mode(q);
  if (q->mode == A_GATHER && (q->k_blocks > 512 || g->image * 2 > INT32_MAX))
    return hn_refuse(why, "too many taps and channels, or an image too large, to be gathered");
  return true;
}

/* Entry of the epilogue that comes through shared memory: -1 for none. */
static int staged_entry(const hone_step *s, const problem *q, const hn_wgmma_tile *t) {
  if (t->split || q->p.out_type != q->p.a_type) return -1;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if ((e->kind == HONE_EPI_ADD || e->kind == HONE_EPI_MUL) && s->input[e->input].desc.dtype == q->p.a_type)
      return (int)i;
  }
  return -1;
}

/* ------------------------------------------------------------------ how it is run */

/* Shared memory: the ring and what is on its way out. Two tiles on their way where K is so short that storing
 * them is what takes time. */
typedef struct layout {
  uint32_t stages, buffers, bytes;
} layout;

static layout layout_of(const problem *q, const hn_wgmma_tile *t, bool staged) {
  const uint32_t rows = tile_rows(t), stage = (rows + t->bn) * 128, group = 64 * t->wm * t->bn * 2;
  const uint32_t table = q->mode == A_GATHER ? q->k_blocks * 64 : 0, room = (226 << 10) - table;
  layout l = {.buffers = 1};
  uint32_t out = 0;
  if (t->split) {
    l.stages = 4, out = 2 * 64 * (t->bn + 8) * 4;
  } else {
    const bool half = q->p.out_type != HONE_DTYPE_F32;
    if (half && (group <= 16 << 10 || (staged && q->k_blocks <= 2)) && room >= 4 * group + 3 * stage)
      l.buffers = 2;
    out = half ? 2 * l.buffers * group : 0;
    l.stages = (room - out) / stage;
    if (l.stages > 8) l.stages = 8;
    if (q->mode == A_GATHER && l.stages > 5) l.stages = 5; /* leaves room for the first-level cache */
  }
  l.bytes = l.stages * (stage + 16) + out + 64 + table;
  return l;
}

/* Clusters of n blocks that are resident at a time. Large ones do not fill a group of processors evenly. */
static double clusters_held(const hone_machine *m, uint32_t n) {
  const double blocks = 2.0 * (m->processors ? m->processors : 132);
  return (n <= 2 ? blocks : n == 4 ? blocks * 0.75 : blocks * 0.6) / n;
}

/* Bytes of the input between the taps of a stride: nobody reads them. */
static double unread(const hone_step *s, const problem *q) {
  const hn_product_args *g = &q->p.args;
  double read = 1;
  if (g->kernel_x < g->stride_x) read *= (double)g->kernel_x / g->stride_x;
  if (g->kernel_y < g->stride_y) read *= (double)g->kernel_y / g->stride_y;
  return (1 - read) * (double)hone_desc_bytes(&s->input[0].desc);
}

/* Seconds of one launch. Measured on one H200: a multiprocessor draws about 88 bytes a nanosecond from L2, a
 * block of K takes its time where nothing overlaps it, results leave at 70 ps each, and 0.9 us pass before
 * and after the products. */
static double seconds(const hone_step *s, const problem *q, const hone_machine *m, const hn_wgmma_tile *t,
                      uint32_t splits) {
  const double sms = m->processors ? m->processors : 132, half = m->half_flops > 0 ? m->half_flops : 1e15;
  const double dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12,
               l2 = m->cache_bytes > 0 ? 1.4 * m->cache_bytes : 11.6e12;
  const double rows = tile_rows(t), block_flops = 2.0 * rows * t->bn * BLOCK,
               block_bytes = (rows + t->bn) * 128;
  const bool staged = staged_entry(s, q, t) >= 0;
  double leave = rows * t->bn * (staged ? 1.2 : 0.8) * 70e-12, time;
  /* Addresses, worked out by 128 threads. */
  if (q->mode == A_GATHER) leave += q->k_blocks * max_of(rows, 128) * 8 * 0.24e-9;
  const double least = q->mode == A_IM2COL ? 0.185e-6 : 0.125e-6; /* a block of K that nothing overlaps */
  if (t->split) {
    const double waves = (double)(int64_t)((double)q->tiles / clusters_held(m, splits) + 0.999);
    const double share = (double)q->tiles * splits / sms < 1 ? 1 : (double)q->tiles * splits / sms;
    const double block =
        max_of(least, max_of(block_flops / (0.85 * half / sms), block_bytes / (l2 / sms)) * share);
    const double meet = splits == 1 ? 0 : splits == 2 ? 0.2e-6 : splits == 4 ? 0.8e-6 : 3e-6;
    time = waves * (block * div_up(q->k_blocks, splits) + leave + 0.6e-6 + meet);
  } else {
    const int64_t rounds = (q->tiles + (int64_t)sms - 1) / (int64_t)sms;
    const double each = (double)rounds;
    /* All multipliers at once draw so much power that clocks fall to two thirds. */
    const double busy = (double)q->tiles >= sms ? 0.70 : 0.9;
    double block = max_of(block_flops / (busy * half / sms), block_bytes / (l2 / sms));
    if (each <= 1) block = max_of(block, least);
    time = each * (block * q->k_blocks + leave);
    if (each <= 1) time += leave * 0.6;
  }
  return max_of(time, (q->p.bytes - unread(s, q)) / (0.82 * dram)) + 0.9e-6 + m->launch_s;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, problem *q,
                     hone_reason *why) {
  if (!read_step(s, m, q, why)) return false;
  const int64_t rows = div_up(q->p.args.m, tile_rows(t));
  q->tiles = rows * div_up(q->n16, t->bn), q->splits = 1;
  if (q->tiles * MOST_SPLITS >= INT32_MAX) return hn_refuse(why, "more than 2^31 tiles");
  if (layout_of(q, t, true).bytes > m->shared_bytes) return hn_refuse(why, "too little shared memory");
  if (!t->split) return true;
  if (q->tiles > 2 * (int64_t)m->processors) return hn_refuse(why, "enough tiles without dividing K");
  for (uint32_t n = 2; n <= MOST_SPLITS && n <= q->k_blocks; n *= 2)
    if (seconds(s, q, m, t, n) < seconds(s, q, m, t, q->splits) * 0.98) q->splits = n;
  return true;
}

bool hn_wgmma_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

double hn_wgmma_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t) {
  problem q;
  return describe(s, m, t, &q, NULL) ? seconds(s, &q, m, t, q.splits) : 1e9;
}

/* ------------------------------------------------------------------ weights */

static size_t blob_bytes(const problem *q) { return (size_t)q->k_blocks * q->n16 * BLOCK * 2; }

hone_status hn_wgmma_need(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                          hone_tactic_need *need, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  need->blob_bytes = blob_bytes(&q);
  need->packed = need->bytewise = 1u << 1;
  return HONE_OK;
}

static float weight(const hone_step *s, int64_t i) {
  const char *w = s->input[1].constant;
  uint16_t h;
  float f;
  if (s->input[1].desc.dtype == HONE_DTYPE_F32) return memcpy(&f, w + i * 4, 4), f;
  memcpy(&h, w + i * 2, 2);
  return s->input[1].desc.dtype == HONE_DTYPE_F16 ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
}

/* Element k of column n: [block of K][n / 8] tiles of 8 columns x 128 bytes of K, as the copy engine would
 * have swizzled them (the 16 bytes number c of row r stand at c ^ r). */
static void put(void *blob, uint32_t n16, uint32_t n, uint32_t k, hone_dtype type, float w) {
  const uint16_t h = type == HONE_DTYPE_F16 ? hn_f32_to_f16(w) : hn_f32_to_bf16(w);
  const uint32_t in = k % BLOCK;
  const size_t tile = (size_t)(k / BLOCK) * (n16 / 8) + n / 8;
  memcpy((char *)blob + tile * 1024 + n % 8 * 128 + ((in / 8 ^ n % 8) << 4) + in % 8 * 2, &h, 2);
}

hone_status hn_wgmma_prepack(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, void *blob,
                             hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  const hn_product_args *g = &q.p.args;
  memset(blob, 0, blob_bytes(&q));
  for (uint32_t n = 0; n < g->n; n++)
    for (uint32_t tap = 0; tap < q.taps; tap++)
      for (uint32_t c = 0; c < g->channels; c++) {
        const float w = g->alpha * weight(s, n * g->b_col + c * g->b_row + tap * g->b_tap);
        put(blob, q.n16, n, (tap * q.units + c / q.unit) * q.unit + c % q.unit, q.p.a_type, w);
      }
  return HONE_OK;
}

/* ------------------------------------------------------------------ run */

static hone_status encode_a(const hone_step_run *run, const problem *q, const hn_wgmma_tile *t,
                            hn_map_words *map, hone_error *error) {
  const hn_product_args *g = &q->p.args;
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  if (q->mode == A_MATRIX)
    return hn_cuda_map_matrix(queue, map, q->p.a_type, run->in[0], g->tap, g->m, g->pixel, BLOCK,
                              tile_rows(t), error);
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
      .rows = tile_rows(t)};
  return hn_cuda_map_im2col(queue, map, q->p.a_type, run->in[0], &c, error);
}

static hone_status write_prefix(const hone_step *s, const problem *q, const hn_wgmma_tile *t, const layout *l,
                                int staged, hn_str *text, hone_error *error) {
  hn_str_printf(
      text,
      "#define HN_T %s\n#define HN_OUT %s\n#define HN_WM %u\n#define HN_BN %u\n#define HN_ALTERNATE %d\n"
      "#define HN_SPLIT %d\n#define HN_STAGES %u\n#define HN_BUFFERS %u\n#define HN_A %d\n"
      "#define HN_UNIT %u\n#define HN_STAGED %d\n%s",
      hn_cuda_type(q->p.a_type), hn_cuda_type(q->p.out_type), t->wm, t->bn, t->alternate, t->split, l->stages,
      l->buffers, (int)q->mode, q->unit, staged >= 0,
      q->p.out_type == HONE_DTYPE_F32 ? "" : "#define HN_FAST_MATH 1\n");
  return hn_cuda_epilogue_fragments(s, q->p.bias, staged, text, error);
}

static void fill_args(const hone_step_run *run, const problem *q, const hn_wgmma_tile *t,
                      hn_conv_wgmma_args *a) {
  const hn_product_args *g = &q->p.args;
  a->x = run->in[0], a->weights = run->blob, a->y = run->out[0];
  hn_cuda_epilogue_bind(run, q->p.bias, &a->epilogue);
  a->image = g->image;
  a->pixels = (i32)g->m, a->columns = (i32)q->columns, a->y_pixel = (i32)g->out_pitch;
  a->n8 = (i32)(q->n16 / 8), a->k_blocks = (i32)q->k_blocks;
  a->n_tiles = (i32)div_up(q->n16, t->bn), a->tiles = (i32)q->tiles;
  a->h = g->in_y, a->w = g->in_x, a->oh = (i32)g->grid_y, a->ow = (i32)g->grid_x;
  a->kw = g->kernel_x, a->taps = (i32)q->taps;
  a->cin = (i32)g->tap, a->pixel = (i32)g->pixel;
  a->stride_h = g->stride_y, a->stride_w = g->stride_x, a->pad_h = g->pad_y, a->pad_w = g->pad_x;
  a->dilation_h = g->dilation_y, a->dilation_w = g->dilation_x;
}

hone_status hn_wgmma_run(const hone_step_run *run, const hn_wgmma_tile *t, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  const hone_step *s = run->step;
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  int staged = staged_entry(s, &q, t);
  if (staged >= 0 && !hn_product_aligned(run->in[s->epilogue[staged].input])) staged = -1;
  const layout l = layout_of(&q, t, staged >= 0);
  const hn_product_args *g = &q.p.args;
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  fill_args(run, &q, t, &args);
  hone_status st = HONE_OK;
  if (q.mode != A_GATHER) st = encode_a(run, &q, t, &args.a, error);
  if (!st && !t->split && q.p.out_type != HONE_DTYPE_F32)
    st = hn_cuda_map_matrix(queue, &args.out, q.p.out_type, run->out[0], q.columns, g->m, g->out_pitch, 64,
                            64 * t->wm, error);
  if (!st && staged >= 0)
    st = hn_cuda_map_matrix(queue, &args.staged, q.p.out_type, run->in[s->epilogue[staged].input], q.columns,
                            g->m, g->out_pitch, 64, 64 * t->wm, error);
  hn_str text = {0};
  if (!st) st = write_prefix(s, &q, t, &l, staged, &text, error);
  const hn_cuda_kernel kernel = {"conv_wgmma", text.ptr, "conv_wgmma"};
  const int64_t persistent = q.tiles < m->processors ? q.tiles : m->processors;
  const hn_cuda_shape shape = {.grid = {(uint32_t)(t->split ? q.tiles * q.splits : persistent), 1, 1},
                               .threads = THREADS,
                               .shared = l.bytes,
                               .cluster = q.splits > 1 ? q.splits : 0,
                               .overlap = true};
  if (!st) st = hn_cuda_launch(queue, &kernel, &shape, &args, sizeof args, error);
  hn_str_free(&text);
  return st;
}
