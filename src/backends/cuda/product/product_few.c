#include "backends/cuda/product/product_few.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/product/product.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 32, COLUMNS = 16, BLOCK_BYTES = CHUNK * COLUMNS * 2 };

typedef struct problem {
  hn_product p;
  uint32_t tap_chunks, chunks; /* of a tap; of all */
} problem;

static uint32_t threads_of(const hn_product_few_config *t) { return 32 * t->warps_m * t->warps_k; }
static size_t shared_of(const hn_product_few_config *t) {
  return (size_t)t->warps_k * t->bm * (t->bn + 8) * 4;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_product_few_config *t, problem *q,
                     hone_reason *why) {
  hn_product *p = &q->p;
  hn_product_args *g = &p->args;
  if (m->arch < 80) return hn_refuse(why, "tensor cores of arch 80 are wanted");
  if (!hn_product_of(s, p, why)) return false;
  if (p->a_type == HONE_DTYPE_F32) return hn_refuse(why, "elements of 32 bits");
  if (!p->constant) return hn_refuse(why, "weights are not constant");
  if (!p->a_chunks) return hn_refuse(why, "rows of A do not consist of whole 16 bytes");
  if (p->args.m > 4096) return hn_refuse(why, "more than 4096 rows");
  q->tap_chunks = (uint32_t)hn_div_up(g->tap, CHUNK);
  q->chunks = g->k / g->tap * q->tap_chunks;
  if (t->splits > 1 && q->chunks < t->splits * t->warps_k)
    return hn_refuse(why, "K is %u: too short for %u parts", g->k, t->splits);
  uint64_t tiles = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) tiles *= g->batch[i];
  g->tiles_m = (uint32_t)hn_div_up(g->m, t->bm), g->tiles_n = (uint32_t)hn_div_up(g->n, t->bn);
  tiles *= (uint64_t)g->tiles_m * g->tiles_n;
  if (tiles * HN_PRODUCT_SPLITS >= 0x7fffffff) return hn_refuse(why, "more than 2^31 blocks");
  g->tiles = (uint32_t)tiles, g->splits = t->splits,
  g->split_tiles = (uint32_t)hn_div_up(q->chunks, t->splits);
  return true;
}

bool hn_product_few_accepts(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                            hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

/* A multiprocessor of an H200: what a kernel takes that reads once and stores; each further wait for memory;
 * what its blocks draw from L2 a second; splits that meet; a tensor that the epilogue waits for. */
#define COST_BASE 1.55e-6
#define COST_WAIT 0.45e-6
#define COST_L2 5.5e10
#define COST_MEET 1.0e-6
#define COST_ADDED 0.5e-6
#define COST_ISSUE 2.0
double hn_product_few_cost(const hone_step *s, const hone_machine *m, const hn_product_few_config *t) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return HN_REFUSED_SECONDS;
  const hn_product_args *g = &q.p.args;
  const double sms = m->processors ? m->processors : 132, dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double clock = m->peak_flops > 0 ? m->peak_flops / (256 * sms) : 1.7e9;
  const double blocks = (double)g->tiles * g->splits, rounds = ceil(blocks / sms);
  const double rows = fmin(t->bm, g->m), columns = fmin(t->bn, (double)hn_fill_up(g->n, COLUMNS));
  const double drawn = (double)g->split_tiles * CHUNK * 2 * (rows + columns);
  const double tm = t->bm / 16 / t->warps_m, tn = t->bn / 16;
  const double chunk = 20 + (q.p.one_tap ? 0 : 25) + tm * 2 * (q.p.one_tap ? 4 : 9) + tn * 6 + tm * tn * 8;
  const double instructions = (double)g->split_tiles * t->warps_m * chunk +
                              threads_of(t) / 32 * (60 + tm * tn * 10) +
                              t->bm * t->bn / 256.0 * (60 + t->warps_k * 10);
  const double turns = ceil((double)g->split_tiles / (t->warps_k * t->together));
  const double busy = rounds * fmax(drawn / COST_L2, instructions / (COST_ISSUE * clock));
  double seconds = COST_BASE + fmax((turns - 1) * COST_WAIT + chunk * 2 * t->together / clock, busy);
  if (t->splits > 1) seconds += m->arch >= 90 ? COST_MEET : 4e-6;
  if (hn_cuda_epilogue_tensors(s)) seconds += COST_ADDED;
  return fmax(seconds, q.p.bytes / (0.8 * dram) + COST_BASE) - 1.3e-6 + m->launch_s;
}

/* ------------------------------------------------------------------ weights */

static size_t product_bytes(const problem *q) {
  return (size_t)hn_div_up(q->p.args.n, COLUMNS) * q->chunks * BLOCK_BYTES;
}
/* Products that have their own B; the others share one. */
static uint32_t own_products(const problem *q) {
  const hn_product_args *g = &q->p.args;
  uint32_t n = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) n *= g->b_batch[i] ? g->batch[i] : 1;
  return n;
}
/* Distances of the packed products, in elements, in place of the originals'. */
static void place_products(problem *q) {
  hn_product_args *g = &q->p.args;
  int64_t at = (int64_t)product_bytes(q) / 2;
  for (uint32_t i = g->n_batch; i-- > 0;)
    if (g->b_batch[i]) g->b_batch[i] = at, at *= g->batch[i];
}

hone_status hn_product_few_need(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                                hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = product_bytes(&q) * own_products(&q);
  n->packed = 1u << 1;
  n->workspace_bytes = hn_product_workspace(&q.p, m, t->bm, t->bn);
  return HONE_OK;
}

static hone_status put_product(const hone_step *s, const problem *q, int64_t from, uint16_t *to,
                               hone_error *error) {
  const hn_product_args *g = &q->p.args;
  const bool f16 = q->p.a_type == HONE_DTYPE_F16;
  for (uint32_t n = 0; n < g->n; n++)
    for (uint32_t tap = 0; tap < g->k / g->tap; tap++)
      for (uint32_t c = 0; c < g->channels; c++) {
        float w;
        if (!hn_cuda_constant_f32(&s->input[1], from + tap * g->b_tap + c * g->b_row + n * g->b_col, 1, &w))
          return hn_fail(error, HONE_ERROR_INTERNAL, "%s: weights of an odd type", s->anchor);
        const size_t block = (size_t)(n / COLUMNS) * q->chunks + tap * q->tap_chunks + c / CHUNK,
                     half = c % 8 / 4;
        const size_t lane = (size_t)(n % 16 / 4 * 2 + n % 2) * 4 + c % CHUNK / 8;
        to[((block * 2 + half) * 32 + lane) * 8 + n % 4 / 2 * 4 + c % 4] =
            f16 ? hn_f32_to_f16(w) : hn_f32_to_bf16(w);
      }
  return HONE_OK;
}

hone_status hn_product_few_prepack(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                                   void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  const hn_product_args *g = &q.p.args;
  const uint32_t own = own_products(&q);
  const size_t bytes = product_bytes(&q);
  memset(blob, 0, bytes * own);
  hone_status st = HONE_OK;
  for (uint32_t i = 0; i < own && !st; i++) {
    int64_t from = 0, left = i;
    for (uint32_t d = g->n_batch; d-- > 0;)
      if (g->b_batch[d]) from += left % g->batch[d] * g->b_batch[d], left /= g->batch[d];
    st = put_product(s, &q, from, (uint16_t *)(void *)((char *)blob + i * bytes), error);
  }
  return st;
}

/* ------------------------------------------------------------------ run */

hone_status hn_product_few_run(const hone_step_run *run, const hn_product_few_config *t, hone_error *error) {
  const hone_step *s = run->step;
  problem q;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(run)), t, &q, &why))
    return hn_not_described(s, &why, error);
  if (!hn_product_aligned(run->in[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: the input lies at an odd address", s->anchor);
  place_products(&q);
  const hn_product_args *g = &q.p.args;
  hn_str text = {0};
  hn_str_printf(
      &text,
      "#define HN_T %s\n#define BM %u\n#define BN %u\n#define WARPS_M %u\n#define WARPS_K %u\n#define "
      "HN_TAP32 %u\n"
      "#define HN_KX %d\n#define HN_KY %d\n#define HN_CHUNKS %u\n#define HN_TOGETHER %u\n#define BLOCKS 2\n",
      hone_dtype_name(q.p.a_type), t->bm, t->bn, t->warps_m, t->warps_k, q.tap_chunks, g->kernel_x,
      g->kernel_y, q.chunks, t->together);
  hn_cuda_shape shape = {.threads = threads_of(t), .shared = (uint32_t)shared_of(t)};
  return hn_product_launch(run, &q.p, &text, "product_few", &shape, error);
}
