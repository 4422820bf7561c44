#include "backends/cuda/wgmma/wgmma.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/wgmma/tensor_map.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/cuda/wgmma/wgmma_problem.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { BLOCK_BYTES = HN_WGMMA_BLOCK_BYTES, MOST_SPLITS = 8 };

typedef hn_wgmma_problem problem;

static uint32_t tile_rows(const hn_wgmma_tile *t) {
  return 64 * t->wm * (t->alternate || t->split ? 1 : t->groups);
}

static uint32_t parts_of(const problem *q) { return q->parts ? q->parts : 1; }

/* Entry of the epilogue that comes through shared memory: -1 for none. */
static int staged_entry(const hone_step *s, const problem *q, const hn_wgmma_tile *t) {
  if (t->split || q->parts || q->p.out_type != q->p.a_type) return -1;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if ((e->kind == HONE_EPI_ADD || e->kind == HONE_EPI_MUL) && s->input[e->input].desc.dtype == q->p.a_type)
      return (int)i;
  }
  return -1;
}

/* ------------------------------------------------------------------ how it is run */

static hn_wgmma_layout layout_of(const problem *q, const hn_wgmma_tile *t, bool staged) {
  const uint32_t rows = tile_rows(t), stage = (rows + t->bn * parts_of(q)) * 128,
                 short_size = q->p.codes ? 1 : 2, group = 64 * t->wm * t->bn * short_size;
  const uint32_t table = q->mode == HN_WGMMA_GATHER ? q->k_blocks * 64 : 0, room = (226 << 10) - table;
  hn_wgmma_layout l = {.buffers = 1};
  uint32_t out = 0;
  if (t->split) {
    l.stages = 4, out = 2 * 64 * (t->bn + 8) * 4;
  } else {
    const bool half = q->p.out_type != HONE_DTYPE_F32;
    if (half &&
        ((group <= 16 << 10 && (t->groups == 2 || q->k_blocks <= 4)) || (staged && q->k_blocks <= 2)) &&
        room >= 2 * t->groups * group + 3 * stage)
      l.buffers = 2;
    out = half ? t->groups * l.buffers * group : 0;
    if (!q->p.codes) out += t->groups * q->vectors * t->bn * 4;
    l.stages = (room - out) / stage;
    if (l.stages > 8) l.stages = 8;
    if (q->mode == HN_WGMMA_GATHER && l.stages > 5) l.stages = 5; /* leaves room for the first-level cache */
    /* A place in the ring always has the same block of K: its weights need not come again. */
    if (q->k_blocks <= l.stages / 2) l.stages -= l.stages % q->k_blocks;
  }
  l.bytes = l.stages * (stage + 16) + out + 16 * (t->groups + 1) + table;
  return l;
}

/* What a launch's seconds are made of: a multiprocessor's share of the tensor cores' peak and of what L2
 * gives, and one block of K. */
typedef struct rates {
  double sms, half, l2, dram; /* dram: all of it */
  double rows, flops, bytes;  /* of a tile; of its product with one block */
} rates;

static rates rates_of(const problem *q, const hone_machine *m, const hn_wgmma_tile *t) {
  const double block = (double)BLOCK_BYTES / (double)hone_dtype_size(q->p.a_type), rows = tile_rows(t);
  rates r = {.sms = m->processors ? m->processors : 132,
             .rows = rows,
             .dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12};
  /* Of codes there are twice as many in a block. */
  r.half = (m->half_flops > 0 ? m->half_flops : 1e15) * (q->p.codes ? 2 : 1) / r.sms;
  r.l2 = (m->cache_bytes > 0 ? 1.4 * m->cache_bytes : 11.6e12) / r.sms;
  if (q->parts) r.half = (m->tf32_flops > 0 ? m->tf32_flops : 5e14) / r.sms;
  r.flops = 2 * rows * t->bn * block * (q->parts > 1 ? 3 : 1);
  r.bytes = (rows + t->bn * parts_of(q)) * BLOCK_BYTES;
  return r;
}

/* Addresses, worked out by 128 threads. */
static double gather_seconds(const problem *q, double rows) {
  return q->mode == HN_WGMMA_GATHER ? q->k_blocks * fmax(rows, 128) * 8 * 0.24e-9 : 0;
}

/* Clusters of n blocks that are resident at a time. Large ones do not fill a group of processors evenly. */
static double clusters_held(const rates *r, uint32_t n) {
  return 2 * r->sms * (n <= 2 ? 1 : n == 4 ? 0.75 : 0.6) / n;
}

/* Blocks that divide K: 0.24 us a wave, a block of K that nothing overlaps, and parts that meet; from half of
 * the multiprocessors on clusters wait for room, since those of the launch before are still there. Fitted to
 * 170 layers of four networks on one H200 (docs/log/perf-log-hopper.md); in a network they take a little
 * longer than alone, since they leave less room for what follows. */
#define DIVIDED_AMONG_OTHERS 1.06
static double divided_seconds(const problem *q, const rates *r, const hn_wgmma_tile *t, uint32_t splits) {
  const double least = q->mode == HN_WGMMA_IM2COL ? 0.173e-6 : 0.053e-6;
  const double blocks = (double)q->tiles * splits / r->sms;
  const double crowded = fmin(fmax((blocks - 0.5) / 0.25, 0), 1);
  const double meet = splits == 1   ? 0
                      : splits == 2 ? 0.52e-6 + 0.89e-6 * crowded
                      : splits == 4 ? 1.97e-6 + 1.57e-6 * crowded
                                    : 3e-6 + 1.57e-6 * crowded;
  const double waves = (double)(int64_t)((double)q->tiles / clusters_held(r, splits) + 0.999);
  const double each =
      fmax(least, fmax(r->flops / (0.85 * r->half), r->bytes / r->l2) * fmax(1.41 * blocks, 1));
  const double leave = r->rows * t->bn * 0.231e-9 + gather_seconds(q, r->rows);
  /* Weights that lie in memory come late to wide blocks, of which few have room. */
  const double late = t->bn == 64 ? (double)q->k_blocks * q->n16 * BLOCK_BYTES / (0.55 * r->dram) : 0;
  return DIVIDED_AMONG_OTHERS *
             (waves * (each * hn_div_up(q->k_blocks, splits) + leave + 0.24e-6 + meet) + 0.41e-6) +
         late;
}

/* Blocks that stay and take tile after tile, of codes. */
static double codes_seconds(const problem *q, const rates *r, const hn_wgmma_tile *t) {
  const double least = q->mode == HN_WGMMA_IM2COL ? 0.131e-6 : 0.140e-6;
  const double leave = r->rows * t->bn * (q->staged ? 1.2 : 0.8) *
                           (!q->table   ? 1
                            : q->staged ? 2.2
                                        : 1.5) *
                           72e-12 +
                       gather_seconds(q, r->rows);
  const double rounds = ceil((double)q->tiles / r->sms);
  /* All multipliers at once draw so much power that clocks fall to two thirds. */
  const double busy = (double)q->tiles >= r->sms ? 0.70 : 0.9;
  const double one = fmax(r->flops / (busy * r->half), r->bytes / r->l2);
  if (rounds <= 1) return fmax(one, least) * q->k_blocks + 1.6 * leave + 0.61e-6;
  return rounds * (one * q->k_blocks + leave) + 0.61e-6;
}

/* The part of the tensor cores' peak that tiles reach in several rounds: small ones read their operands as
 * fast as shared memory gives them, and all of them draw so much power that clocks fall. */
static double busy_of(const hn_wgmma_tile *t) {
  const uint32_t rows = tile_rows(t);
  if (t->bn == 256) return 0.72;
  if (t->bn == 128) return rows == 64 ? 0.54 : rows == 128 ? 0.725 : 0.675;
  return rows == 64 ? 0.35 : 0.52;
}

/* The same of floats. A value leaves in 30 ps where two warpgroups store, or the other one multiplies
 * meanwhile. Fitted to 561 measurements of 87 layers of three networks on one H200
 * (docs/log/perf-log-hopper.md).
 */
static double staying_seconds(const problem *q, const rates *r, const hn_wgmma_tile *t) {
  const double rounds = ceil((double)q->tiles / r->sms), groups = t->alternate ? 2 : t->groups;
  const double added = !q->staged && !q->added ? 1 : t->alternate ? 1.85 : 2.2;
  const double leave = r->rows * t->bn * added * 60e-12 / groups + gather_seconds(q, r->rows);
  /* Functions of values wait for one another where few warpgroups are at them together. */
  const double functions =
      r->rows * t->bn * q->functions * (1.55e-12 + 4.35e-12 / (t->alternate ? 1 : t->groups));
  /* The copy engine gathers pixel by pixel. */
  const double gather = q->mode == HN_WGMMA_IM2COL ? r->rows * (BLOCK_BYTES / 2.0 / q->unit) * 1.75e-9 : 0;
  if (rounds <= 1) {
    /* f32 passes through registers, and its warpgroups wait for each block's products: by hand to 12 layers
     * of two networks on one H200. */
    const double busy = q->parts ? 0.66 : 0.82, late = q->parts ? 1.5e-6 : 0;
    const double least = q->parts                     ? 0.15e-6 + 0.1e-6 * q->parts
                         : q->mode == HN_WGMMA_IM2COL ? 0.17e-6
                                                      : 0.126e-6;
    const double one = fmax(fmax(r->flops / (busy * r->half), least), gather);
    /* One tile: a warpgroup has it alone where it cannot be shared. */
    return one * q->k_blocks + (t->alternate && t->wm == 1 ? 2 : 1) * leave + functions + late + 0.48e-6;
  }
  const double one = fmax(r->flops / (busy_of(t) * r->half), gather);
  return rounds * (one * q->k_blocks + (t->alternate ? 1 : 1.2) * leave + functions);
}

/* Seconds of one launch. */
double hn_wgmma_seconds(const problem *q, const hone_machine *m, const hn_wgmma_tile *t, uint32_t splits) {
  const rates r = rates_of(q, m, t);
  const double moved = q->p.bytes - q->unread,
               written =
                   fmin((double)q->p.args.m * q->columns * (double)hone_dtype_size(q->p.out_type) / moved, 1);
  if (!t->split && !q->p.codes) {
    /* Rows of y that are no whole lines of 128 bytes, written by several tiles: lines in parts. Writing costs
     * more than reading, and products and memory hinder each other where both take long. */
    const bool parts =
        q->n16 > t->bn && q->p.args.out_pitch * (int64_t)hone_dtype_size(q->p.out_type) % 128 != 0;
    const double share = (0.95 - 0.205 * written - (t->alternate ? 0 : 0.02)) * (parts ? 0.75 : 1);
    const double time = staying_seconds(q, &r, t), memory = moved / (share * r.dram);
    return cbrt(time * time * time + memory * memory * memory) + m->launch_s;
  }
  /* Wide tiles leave in bursts: where most of what moves is written, they move less of it. */
  const double share = 0.82 - (t->bn >= 128 ? 0.1 * written : 0);
  const double time = t->split ? divided_seconds(q, &r, t, splits) : codes_seconds(q, &r, t);
  return fmax(time, moved / (share * r.dram) + 0.6e-6) + m->launch_s;
}

bool hn_wgmma_tiles(problem *q, const hone_machine *m, const hn_wgmma_tile *t, hone_reason *why) {
  const int64_t rows = hn_div_up(q->p.args.m, tile_rows(t));
  q->tiles = rows * hn_div_up(q->n16, t->bn), q->splits = 1;
  if (q->tiles * MOST_SPLITS >= INT32_MAX) return hn_refuse(why, "more than 2^31 tiles");
  const hn_wgmma_layout l = layout_of(q, t, true);
  if (l.bytes > m->shared_bytes || l.stages < (q->parts ? 3 : 1))
    return hn_refuse(why, "too little shared memory");
  if (!t->split) return true;
  if (q->tiles > 2 * (int64_t)m->processors) return hn_refuse(why, "enough tiles without dividing K");
  for (uint32_t n = 2; n <= MOST_SPLITS && n <= q->k_blocks; n *= 2)
    if (hn_wgmma_seconds(q, m, t, n) < hn_wgmma_seconds(q, m, t, q->splits) * 0.98) q->splits = n;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, problem *q,
                     hone_reason *why) {
  if (!hn_wgmma_read(s, m, q, why)) return false;
  q->staged = staged_entry(s, q, t) >= 0, q->unread = hn_wgmma_unread(s, q);
  q->vectors = hn_cuda_epilogue_vectors(s, q->p.bias), q->functions = hn_cuda_epilogue_instructions(s);
  return hn_wgmma_tiles(q, m, t, why);
}

/* Where a block has one tile, its warpgroups share it: each makes half of the rows. */
static hn_wgmma_tile shared_tile(const problem *q, const hone_machine *m, const hn_wgmma_tile *t) {
  hn_wgmma_tile it = *t;
  if (t->alternate && t->wm == 2 && q->tiles <= (int64_t)m->processors) it.wm = 1, it.alternate = false;
  return it;
}

bool hn_wgmma_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

double hn_wgmma_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t) {
  problem q;
  return describe(s, m, t, &q, NULL) ? hn_wgmma_seconds(&q, m, t, q.splits) : HN_REFUSED_SECONDS;
}

/* ------------------------------------------------------------------ weights */

size_t hn_wgmma_weights(const problem *q) { return (size_t)q->k_blocks * q->n16 * BLOCK_BYTES * parts_of(q); }

hone_status hn_wgmma_need(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                          hone_tactic_need *need, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = hn_wgmma_weights(&q);
  need->packed = need->bytewise = 1u << 1;
  return HONE_OK;
}

hone_status hn_wgmma_prepack(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, void *blob,
                             hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  hn_wgmma_pack(s, &q, q.n16 / 8, blob);
  return HONE_OK;
}

size_t hn_wgmma_shared(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, uint64_t *key) {
  problem q;
  return describe(s, m, t, &q, NULL) ? hn_wgmma_shared_weights(&q, key) : 0;
}

/* ------------------------------------------------------------------ run */

void hn_wgmma_prefix(const problem *q, const hn_wgmma_tile *t, hn_str *text) {
  const hn_wgmma_layout l = layout_of(q, t, q->staged);
  hn_str_printf(
      text,
      "#define HN_T %s\n#define %s %s\n#define HN_WM %u\n#define HN_BN %u\n#define HN_ALTERNATE %d\n"
      "#define HN_SPLIT %d\n#define HN_STAGES %u\n#define HN_BUFFERS %u\n#define HN_A %d\n"
      "#define HN_UNIT %u\n#define HN_STAGED %d\n#define HN_GROUPS %u\n%s",
      hone_dtype_name(q->p.a_type), q->p.codes ? "HN_CODE" : "HN_OUT", hone_dtype_name(q->p.out_type), t->wm,
      t->bn, t->alternate, t->split, l.stages, l.buffers, (int)q->mode, q->unit, q->staged, t->groups,
      q->p.codes || q->p.out_type == HONE_DTYPE_F32 ? "" : "#define HN_FAST_MATH 1\n");
  if (!q->parts) return;
  hn_str_printf(text, "#define HN_TF32_PARTS %u\n#include \"prelude.cuh\"\n", q->parts);
  hn_wgmma_write_product(text, "hn_wgmma_add", "tf32", t->bn, true);
}

hone_status hn_wgmma_launch(const hone_step_run *run, const problem *q, const hn_wgmma_tile *t,
                            const void *staged, hn_conv_wgmma_args *args, const hn_str *text,
                            hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  const hn_product_args *g = &q->p.args;
  const uint32_t row =
      q->p.codes && t->bn < 128 ? t->bn : BLOCK_BYTES / (uint32_t)hone_dtype_size(q->p.out_type);
  if (text->failed) return hn_fail_memory(error, text->cap, "device text");
  hn_wgmma_args(q, run->in[0], args);
  args->weights = run->blob, args->y = run->out[0], args->n_tiles = (i32)hn_div_up(q->n16, t->bn);
  hone_status st = HONE_OK;
  if (q->mode != HN_WGMMA_GATHER) st = hn_wgmma_map_a(queue, q, run->in[0], tile_rows(t), &args->a, error);
  if (!st && !t->split && q->p.out_type != HONE_DTYPE_F32)
    st = hn_cuda_map_matrix(queue, &args->out, q->p.out_type, run->out[0], q->columns, g->m, g->out_pitch,
                            row, 64 * t->wm, error);
  if (!st && q->staged)
    st = hn_cuda_map_matrix(queue, &args->staged, q->p.out_type, staged, q->columns, g->m, g->out_pitch, row,
                            64 * t->wm, error);
  const hn_cuda_kernel kernel = {"conv_wgmma", text->ptr, "conv_wgmma"};
  int64_t persistent = q->tiles < m->processors ? q->tiles : m->processors;
  /* Tiles of one block of threads then have the same columns, and weights come once. */
  const int64_t left = persistent % args->n_tiles;
  if (left <= persistent / 32 && q->k_blocks <= layout_of(q, t, q->staged).stages) persistent -= left;
  const hn_cuda_shape shape = {.grid = {(uint32_t)(t->split ? q->tiles * q->splits : persistent), 1, 1},
                               .threads = 128 * (1 + t->groups),
                               .shared = layout_of(q, t, q->staged).bytes,
                               .cluster = q->splits > 1 ? q->splits : 0,
                               .overlap = true};
  return st ? st : hn_cuda_launch(queue, &kernel, &shape, args, sizeof *args, error);
}

hone_status hn_wgmma_run(const hone_step_run *run, const hn_wgmma_tile *tile, hone_error *error) {
  const hone_step *s = run->step;
  const hone_machine *m = hn_cuda_machine(hn_cuda_queue_of(run));
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, tile, &q, &why)) return hn_not_described(s, &why, error);
  const hn_wgmma_tile it = shared_tile(&q, m, tile), *t = &it;
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  int staged = staged_entry(s, &q, t);
  if (staged >= 0 && !hn_product_aligned(run->in[s->epilogue[staged].input])) staged = -1;
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  hn_cuda_epilogue_bind(run, q.p.bias, &args.epilogue);
  hn_str text = {0};
  q.staged = staged >= 0;
  hn_wgmma_prefix(&q, t, &text);
  hone_status st = hn_cuda_epilogue_fragments(s, q.p.bias, staged, &text, error);
  if (!st)
    st = hn_wgmma_launch(run, &q, t, staged >= 0 ? run->in[s->epilogue[staged].input] : NULL, &args, &text,
                         error);
  hn_str_free(&text);
  return st;
}
