#include "backends/cuda/product/nbits_mma.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/product/product.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/strided.h"
#include "model/ops/microsoft/codes/nbits.h"

#include <math.h>
#include <string.h>

enum { A, CODES, SCALES, ZEROS, GROUPS, BIAS };
enum { STRIP = 16, EIGHT = 8, VECTOR = 16, CHUNK = 32, NARROW_BLOCK = 16 };
enum { NO_ZEROS, ZERO_CODES, ZERO_FLOATS };

typedef struct problem {
  hn_product p;
  hn_nbits w;
  uint32_t bits;         /* of a packed code: those of 2 are kept in 4 */
  uint32_t group;        /* rows of K that a thread's 16 bytes are of, with those of its quad */
  uint32_t groups;       /* of a column */
  uint32_t units, spans; /* scales of a span, and spans of a column */
  uint32_t zeros, parts;
  bool wide; /* scales are f32 */
} problem;

/* ------------------------------------------------------------------ the step */

static uint32_t stages_of(const problem *q, const hn_nbits_mma_config *t) {
  return q->wide || !q->p.a_chunks ? 2 : t->stages;
}
static uint32_t bn_of(const hn_nbits_mma_config *t) { return STRIP * t->strips * t->warps_n; }
static size_t shared_of(const problem *q, const hn_nbits_mma_config *t, uint32_t stages) {
  const size_t row = (size_t)q->group * t->held * t->warps_k * 2 + 64, ring = stages * q->parts * t->bm * row,
               sums = (size_t)t->warps_k * t->bm * (bn_of(t) + 8) * 4;
  return ring > sums ? ring : sums;
}

static bool constant(const hone_step *s, uint32_t i) {
  return s->input[i].constant && hn_strided_dense(&s->input[i].desc);
}

/* Operands: their types, and which are there. */
static bool read_step(const hone_step *s, problem *q, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[A].desc, *y = &s->output[0].desc;
  if (!s->node || hn_nbits_of(s->node, &q->w, NULL)) return hn_refuse(why, "its attributes");
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_type(a->dtype) || !hn_cuda_type(y->dtype))
    return hn_refuse(why, "A is %s, the result %s", hone_dtype_name(a->dtype), hone_dtype_name(y->dtype));
  if (!hn_strided_dense(a) || !hn_strided_dense(y)) return hn_refuse(why, "A or the result is not row-major");
  if (!constant(s, CODES) || !constant(s, SCALES) || s->input[CODES].desc.dtype != HONE_DTYPE_U8 ||
      !hn_cuda_type(s->input[SCALES].desc.dtype))
    return hn_refuse(why, "codes or scales are not constant, or of other types");
  if (hn_cuda_has(s, GROUPS)) return hn_refuse(why, "rows in groups");
  if (hn_cuda_has(s, ZEROS)) {
    const hone_dtype z = s->input[ZEROS].desc.dtype;
    q->zeros = z == HONE_DTYPE_U8 ? ZERO_CODES : ZERO_FLOATS;
    if (!constant(s, ZEROS) || (z != HONE_DTYPE_U8 && !hn_cuda_type(z)))
      return hn_refuse(why, "zero points are not constant, or %s", hone_dtype_name(z));
  }
  if (hn_cuda_has(s, BIAS) && !hn_cuda_type(s->input[BIAS].desc.dtype))
    return hn_refuse(why, "the bias is %s", hone_dtype_name(s->input[BIAS].desc.dtype));
  return hn_cuda_epilogue_accepts(s, why);
}

static size_t codes_bytes(const problem *q) {
  return (size_t)hn_div_up(q->p.args.n, STRIP) * q->groups * (32 * VECTOR);
}
static size_t scales_of(const problem *q) { /* how many */
  return (size_t)hn_div_up(q->p.args.n, STRIP) * q->spans * q->units * STRIP;
}
static size_t scale_bytes(const problem *q) { return scales_of(q) * (q->wide ? 4 : 2); }
static size_t zero_bytes(const problem *q) {
  return q->zeros == NO_ZEROS ? 0 : scales_of(q) * (q->zeros == ZERO_FLOATS ? 4 : 1);
}
static size_t factor_bytes(const problem *q) {
  return q->wide ? 0 : (size_t)hn_fill_up(q->p.args.n, STRIP) * sizeof(float);
}
static size_t blob_bytes(const problem *q) {
  return codes_bytes(q) + scale_bytes(q) + zero_bytes(q) + factor_bytes(q);
}

static void pack_sizes(const hone_step *s, problem *q) {
  const uint32_t block = (uint32_t)q->w.block;
  q->wide = s->input[A].desc.dtype == HONE_DTYPE_F32;
  q->bits = q->w.bits < 8 ? 4 : 8;
  q->group = 256 / q->bits;
  q->groups = (uint32_t)hn_div_up(q->w.rows, q->group);
  q->units = block < q->group ? q->group / block : 1;
  q->spans = block < q->group ? q->groups : (uint32_t)hn_div_up(q->w.rows, block);
}

/* The product as product.cuh reads it. */
static bool read_product(const hone_step *s, problem *q, hone_reason *why) {
  hn_product *p = &q->p;
  hn_product_args *g = &p->args;
  const int64_t m = hone_desc_count(&s->input[A].desc) / q->w.rows;
  if (m < 1) return hn_refuse(why, "an empty operand");
  if (m >= INT32_MAX) return hn_refuse(why, "more than 2^31 rows");
  p->a_type = s->input[A].desc.dtype, p->out_type = s->output[0].desc.dtype, p->c_type = HONE_DTYPE_NONE;
  p->constant = p->one_tap = true;
  p->chunk = 16 / (uint32_t)hone_dtype_size(p->a_type);
  p->bias = hn_cuda_has(s, BIAS) ? BIAS : HN_CUDA_NO_BIAS;
  g->m = (uint32_t)m, g->n = (uint32_t)q->w.columns, g->k = g->tap = g->channels = (uint32_t)q->w.rows;
  g->alpha = g->beta = 1;
  g->n_batch = 1, g->batch[0] = 1;
  g->in_z = g->kernel_z = 1;
  g->pixel = g->k, g->out_pitch = g->n;
  p->a_chunks = g->k % p->chunk == 0;
  p->store = g->n % 8 == 0 ? 8 : g->n % 4 == 0 && p->out_type == HONE_DTYPE_F32 ? 4 : 1;
  p->flops = 2.0 * (double)m * g->n * g->k;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t, problem *q,
                     hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (!read_step(s, q, why) || !hn_cuda_tensor_cores(m, s->input[A].desc.dtype, why)) return false;
  pack_sizes(s, q);
  if (q->wide && s->math < HONE_MATH_F32) return hn_refuse(why, "the plan allows f32 products alone");
  if (!read_product(s, q, why)) return false;
  q->parts = !q->wide ? 1 : s->math < HONE_MATH_FAST ? 3 : 2;
  if (shared_of(q, t, stages_of(q, t)) + HN_PRODUCT_OWN_SHARED > m->shared_bytes)
    return hn_refuse(why, "%zu bytes of shared memory", shared_of(q, t, stages_of(q, t)));
  hn_product_args *g = &q->p.args;
  const uint32_t tiles_k = hn_div_up(q->groups, t->held * t->warps_k);
  g->tiles_m = hn_div_up(g->m, t->bm), g->tiles_n = hn_div_up(g->n, bn_of(t));
  const uint64_t tiles = (uint64_t)g->tiles_m * g->tiles_n;
  if (tiles * HN_PRODUCT_SPLITS >= 0x7fffffff) return hn_refuse(why, "more than 2^31 blocks");
  if (t->splits > tiles_k) return hn_refuse(why, "K is %u: too short for %u parts", g->k, t->splits);
  g->tiles = (uint32_t)tiles, g->splits = t->splits, g->split_tiles = hn_div_up(tiles_k, t->splits);
  q->p.bytes = (double)blob_bytes(q) + (double)hone_desc_bytes(&s->input[A].desc) +
               (double)hone_desc_bytes(&s->output[0].desc) + hn_cuda_epilogue_bytes(s);
  return true;
}

bool hn_nbits_mma_accepts(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t,
                          hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

/* ------------------------------------------------------------------ cost */

/* Fitted to 154 runs on one H200 (docs/log/perf-log-gpu.md): a launch and the first wait for memory; how the
 * sums of 512 values of a block leave. Cycles for 16 columns by 32 rows of K, of a quarter of a
 * multiprocessor that has enough warps: codes become numbers, and of eight rows a product and its scale; and
 * of a warp alone, which waits for itself, with what each eight rows add. The part of DRAM's peak that is
 * reached. */
#define COST_BASE 2.3e-6
#define COST_LEAVE 1.55e-6
#define COST_OPEN 55
#define COST_PRODUCT 13.5
#define COST_SUM 10
#define COST_ALONE 218
#define COST_ALONE_ROWS 13.5
#define COST_DRAM 0.75
double hn_nbits_mma_cost(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return HN_REFUSED_SECONDS;
  const hn_product_args *g = &q.p.args;
  const double sms = m->processors ? m->processors : 132, dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double blocks = (double)g->tiles * g->splits, rounds = ceil(blocks / sms),
               waves = ceil(rounds / t->blocks);
  const double own = (double)g->split_tiles * t->held * q.group / CHUNK * t->strips; /* chunks of a warp */
  const double cycles = COST_OPEN + t->bm / 8.0 * (COST_PRODUCT * q.parts + COST_SUM),
               alone = COST_ALONE + t->bm / 8.0 * COST_ALONE_ROWS * q.parts;
  const double work = rounds * own * t->warps_k * t->warps_n * cycles / 4 / hn_cuda_clock(m),
               wait = waves * own * alone / hn_cuda_clock(m);
  const double leave =
      rounds * COST_LEAVE * sqrt(t->bm * bn_of(t) / 512.0) + (g->splits > 1 && m->arch < 90 ? 3e-6 : 0);
  const double seconds =
      cbrt(work * work * work + wait * wait * wait) + leave + (hn_cuda_epilogue_tensors(s) ? 0.3e-6 : 0);
  return fmax(seconds, q.p.bytes / (COST_DRAM * dram)) + COST_BASE - 1.3e-6 + m->launch_s;
}

void hn_nbits_mma_work(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t,
                       hone_work *work) {
  problem q;
  if (!describe(s, m, t, &q, NULL) || !q.wide) return;
  work->arithmetic = HONE_ARITHMETIC_BF16;
  work->flops += (q.parts - 1) * 2 * s->cost.macs;
}

/* ------------------------------------------------------------------ weights */

hone_status hn_nbits_mma_need(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t,
                              hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = blob_bytes(&q);
  n->workspace_bytes = hn_product_workspace(&q.p, m, t->bm, bn_of(t));
  n->packed = 1u << CODES | 1u << SCALES | (q.zeros ? 1u << ZEROS : 0);
  n->bytewise = 1u << CODES | (q.zeros == ZERO_CODES ? 1u << ZEROS : 0);
  return HONE_OK;
}

/* Codes of 4 bits that lie one behind the other, so that the low and high halves of a word have the first
 * two, shifted by 4 the next two, and so on. */
static uint32_t pairs_of(uint32_t w) {
  uint32_t even = w & 0x0f0f0f0fu, odd = w >> 4 & 0x0f0f0f0fu;
  even = (even | even >> 4) & 0x00ff00ffu, odd = (odd | odd >> 4) & 0x00ff00ffu;
  return ((even | even >> 8) & 0xffff) | (odd | odd >> 8) << 16;
}

/* `n` (4 or 8) codes from row k on, as they lie packed; none beyond the column. */
static uint32_t codes_at(const problem *q, const uint8_t *column, int64_t k, int n) {
  uint32_t w = 0;
  if (k >= q->w.blocks * q->w.block) return 0;
  if (q->w.bits == 2)
    for (int i = 0; i < n; i++) w |= hn_nbits_code(column, 2, k + i) << 4 * i;
  else
    memcpy(&w, column + k * q->w.bits / 8, (size_t)(n * q->w.bits / 8));
  return w;
}

/* A thread's eight codes of 32 rows: those of quad member t. Words of `to`: one, of 8 bits two. */
static void put_eight(const problem *q, const uint8_t *column, int64_t k, int t, unsigned char *to) {
  const bool narrow = q->w.block == NARROW_BLOCK;
  const int64_t first = k + (narrow ? 4 : 8) * t, second = narrow ? first + 16 : first + 4;
  uint32_t w[2] = {codes_at(q, column, first, 4), codes_at(q, column, second, 4)};
  if (q->bits == 4) w[0] = pairs_of((w[0] & 0xffff) | w[1] << 16);
  memcpy(to, w, q->bits);
}

static void put_codes(const problem *q, const uint8_t *from, unsigned char *to) {
  const int64_t column = q->w.blocks * q->w.block * q->w.bits / 8;
  const uint32_t chunks = q->group / CHUNK, each = q->bits; /* bytes of a column, in a chunk, of a thread */
  for (int64_t n = 0; n < q->w.columns; n++)
    for (uint32_t i = 0; i < q->groups; i++)
      for (uint32_t c = 0; c < chunks; c++)
        for (int t = 0; t < 4; t++) {
          const int64_t lane = n % EIGHT * 4 + t, half = n % STRIP / EIGHT;
          unsigned char *at = to + (((n / STRIP) * q->groups + i) * 32 + lane) * VECTOR;
          put_eight(q, from + n * column, (int64_t)i * q->group + c * CHUNK,
                    HN_FAULT("nbits_quad") ? t ^ 1 : t, at + (c * 2 + half) * each);
        }
}

/* Where scale or zero point b of column n lies, counted in them. */
static size_t scale_at(const problem *q, int64_t n, int64_t b) {
  const int64_t span = b / q->units, unit = b % q->units;
  return (size_t)(((((n / STRIP) * q->spans + span) * EIGHT + n % EIGHT) * q->units + unit) * 2 +
                  n % STRIP / EIGHT);
}

static float number(const hone_step_tensor *t, int64_t i) {
  float f = 0;
  hn_cuda_constant_f32(t, i, 1, &f);
  return f;
}

/* Powers of two by which a column's scales fill f16's range. */
static int exponent_of(const problem *q, const hone_step_tensor *scales, int64_t n) {
  enum { TOP = 14, LEAST = -100 };
  float most = 0;
  int e = TOP;
  for (int64_t b = 0; b < q->w.blocks; b++) {
    const float x = fabsf(number(scales, n * q->w.blocks + b));
    if (isfinite(x) && x > most) most = x;
  }
  if (most > 0) frexpf(most, &e);
  return (e < LEAST ? LEAST : e) - TOP;
}

static void put_scales(const problem *q, const hone_step_tensor *from, void *to, float *factors) {
  for (int64_t n = 0; n < q->w.columns; n++) {
    const int e = q->wide ? 0 : exponent_of(q, from, n);
    if (!q->wide) factors[n] = ldexpf(1, e);
    for (int64_t b = 0; b < q->w.blocks; b++) {
      /* Weights of an infinite scale are infinities of both signs and NaN, whose sum is NaN. */
      const float given = number(from, n * q->w.blocks + b), x = isinf(given) ? NAN : given;
      const size_t at = scale_at(q, HN_FAULT("nbits_column") ? n ^ EIGHT : n, b);
      if (q->wide)
        ((float *)to)[at] = x;
      else
        ((uint16_t *)to)[at] = hn_f32_to_f16(ldexpf(x, -e));
    }
  }
}

static void put_zeros(const problem *q, const hone_step_tensor *from, void *to) {
  const int64_t row = (q->w.blocks * q->w.bits + 7) / 8;
  for (int64_t n = 0; n < q->w.columns; n++)
    for (int64_t b = 0; b < q->w.blocks; b++)
      if (q->zeros == ZERO_FLOATS)
        ((float *)to)[scale_at(q, n, b)] = number(from, n * q->w.blocks + b) - (float)(1 << (q->w.bits - 1));
      else
        ((uint8_t *)to)[scale_at(q, n, b)] =
            (uint8_t)hn_nbits_code((const uint8_t *)from->constant + n * row, q->w.bits, b);
}

hone_status hn_nbits_mma_prepack(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t,
                                 void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  unsigned char *codes = blob, *scales = codes + codes_bytes(&q), *zeros = scales + scale_bytes(&q),
                *factors = zeros + zero_bytes(&q);
  put_codes(&q, s->input[CODES].constant, codes);
  put_scales(&q, &s->input[SCALES], scales, (float *)(void *)factors);
  if (q.zeros) put_zeros(&q, &s->input[ZEROS], zeros);
  return HONE_OK;
}

size_t hn_nbits_mma_shared(const hone_step *s, const hone_machine *m, const hn_nbits_mma_config *t,
                           uint64_t *key) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return 0;
  const int64_t of[] = {q.bits, q.group, q.groups, q.spans, q.units, q.zeros, q.wide};
  return hn_cuda_shared_blob("codes of a few bits", of, sizeof of / sizeof *of, key);
}

/* ------------------------------------------------------------------ run */

hone_status hn_nbits_mma_run(const hone_step_run *run, const hn_nbits_mma_config *t, hone_error *error) {
  const hone_step *s = run->step;
  problem q;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(run)), t, &q, &why))
    return hn_not_described(s, &why, error);
  if (!hn_product_aligned(run->in[A])) q.p.a_chunks = false;
  const uint32_t stages = stages_of(&q, t), block = (uint32_t)q.w.block;
  hn_str text = {0};
  hn_str_printf(&text,
                "#define HN_T %s\n#define HN_BITS %u\n#define HN_BLOCK %u\n#define HN_GROUPS %u\n"
                "#define HN_SPANS %u\n#define HN_ZEROS %u\n#define HN_MIDDLE %d\n",
                hone_dtype_name(q.p.a_type), q.bits, block < q.group ? block : q.group, q.groups, q.spans,
                q.zeros, 1 << (q.w.bits - 1));
  hn_str_printf(
      &text,
      "#define HN_SPAN %u\n#define BM %u\n#define STRIPS %u\n#define WARPS_N %u\n#define WARPS_K %u\n"
      "#define HELD %u\n#define STAGES %u\n#define PARTS %u\n#define BLOCKS %u\n%s",
      block < q.group ? 1 : block / q.group, t->bm, t->strips, t->warps_n, t->warps_k, t->held, stages,
      q.parts, t->blocks, q.p.a_chunks ? "#define HN_A_CHUNKS 1\n" : "");
  hn_cuda_shape shape = {.threads = 32 * t->warps_n * t->warps_k,
                         .shared = (uint32_t)shared_of(&q, t, stages)};
  return hn_product_launch(run, &q.p, &text, "nbits_mma", &shape, error);
}
