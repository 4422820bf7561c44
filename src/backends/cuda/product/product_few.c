#include "backends/cuda/product/product_few.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/product/product.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"

#include <math.h>
#include <string.h>

enum { WARPS = 8, CHUNK = 32, COLUMNS = 16, BLOCK_BYTES = CHUNK * COLUMNS * 2, MOST_ROWS = 4096 };

typedef struct problem {
  hn_product p;
  uint32_t chunks; /* of K */
} problem;

static size_t shared_of(const hn_product_few_config *t) { return (size_t)WARPS * t->bm * (t->bn + 8) * 4; }

static bool describe(const hone_step *s, const hone_machine *m, const hn_product_few_config *t, problem *q,
                     hone_reason *why) {
  hn_product *p = &q->p;
  hn_product_args *g = &p->args;
  if (!hn_product_of(s, p, why)) return false;
  if (p->a_type == HONE_DTYPE_F32) return hn_refuse(why, "elements of 32 bits");
  if (!hn_cuda_tensor_cores(m, p->a_type, why)) return false;
  if (!p->constant) return hn_refuse(why, "weights are not constant");
  if (!p->a_chunks) return hn_refuse(why, "rows of A do not consist of whole 16 bytes");
  if (!p->one_tap) return hn_refuse(why, "a row of A is more than one run of memory");
  if (g->m > MOST_ROWS) return hn_refuse(why, "more than %d rows", MOST_ROWS);
  uint64_t tiles = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) tiles *= g->batch[i];
  g->tiles_m = (uint32_t)hn_div_up(g->m, t->bm), g->tiles_n = (uint32_t)hn_div_up(g->n, t->bn);
  tiles *= (uint64_t)g->tiles_m * g->tiles_n;
  if (tiles >= 0x7fffffff) return hn_refuse(why, "more than 2^31 blocks");
  q->chunks = (uint32_t)hn_div_up(g->k, CHUNK);
  g->tiles = (uint32_t)tiles, g->splits = 1, g->split_tiles = q->chunks;
  return true;
}

bool hn_product_few_accepts(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                            hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

/* A multiprocessor of an H200: what a kernel takes that reads once and stores; each further wait for memory;
 * what its blocks draw from L2 a second; a tensor that the epilogue waits for. */
#define COST_BASE 1.55e-6
#define COST_WAIT 0.45e-6
#define COST_L2 8e10
#define COST_L2_ALL 6e12
#define COST_ADDED 0.1e-6
double hn_product_few_cost(const hone_step *s, const hone_machine *m, const hn_product_few_config *t) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return HN_REFUSED_SECONDS;
  const hn_product_args *g = &q.p.args;
  const double sms = m->processors ? m->processors : 132, dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double rounds = ceil(g->tiles / sms), turns = ceil((double)q.chunks / (WARPS * t->together));
  const double rows = fmin(t->bm, g->m), columns = fmin(t->bn, (double)hn_fill_up(g->n, COLUMNS));
  const double drawn = (double)q.chunks * CHUNK * 2 * (rows + columns);
  const double draw = fmax(rounds * drawn / COST_L2, g->tiles * drawn / COST_L2_ALL);
  const double seconds = COST_BASE + (turns + rounds - 2) * COST_WAIT + t->finish + draw +
                         (hn_cuda_epilogue_tensors(s) ? COST_ADDED : 0);
  return fmax(seconds, q.p.bytes / (0.6 * dram) + COST_BASE) - 1.3e-6 + m->launch_s;
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
  n->packed = n->bytewise = 1u << 1;
  return HONE_OK;
}

static void put_product(const hone_step *s, const problem *q, int64_t from, uint16_t *to) {
  const hn_product_args *g = &q->p.args;
  const bool f16 = q->p.a_type == HONE_DTYPE_F16;
  const hn_cuda_weights all = {.from = &s->input[1],
                               .at = from,
                               .by_column = g->b_col,
                               .by_channel = g->b_row,
                               .columns = g->n,
                               .taps = 1,
                               .channels = g->channels};
  for (hn_cuda_weights_tile t = {.all = all}; hn_cuda_weights_next(&t);)
    for (uint32_t i = 0; i < t.columns; i++)
      for (uint32_t c = 0; c < t.channels; c++) {
        const uint32_t n = t.column + i, k = t.channel + c;
        const size_t block = (size_t)(n / COLUMNS) * q->chunks + k / CHUNK, half = k % 8 / 4;
        const size_t lane = (size_t)(n % 16 / 4 * 2 + n % 2) * 4 + k % CHUNK / 8;
        to[((block * 2 + half) * 32 + lane) * 8 + n % 4 / 2 * 4 + k % 4] =
            f16 ? hn_f32_to_f16(t.w[i][c]) : hn_f32_to_bf16(t.w[i][c]);
      }
}

hone_status hn_product_few_prepack(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                                   void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, t, &q, &why)) return hn_not_described(s, &why, error);
  const hn_product_args *g = &q.p.args;
  const uint32_t own = own_products(&q);
  const size_t bytes = product_bytes(&q);
  for (uint32_t i = 0; i < own; i++) {
    int64_t from = 0, left = i;
    for (uint32_t d = g->n_batch; d-- > 0;)
      if (g->b_batch[d]) from += left % g->batch[d] * g->b_batch[d], left /= g->batch[d];
    put_product(s, &q, from, (uint16_t *)(void *)((char *)blob + i * bytes));
  }
  return HONE_OK;
}

size_t hn_product_few_shared(const hone_step *s, const hone_machine *m, const hn_product_few_config *t,
                             uint64_t *key) {
  problem q;
  if (!describe(s, m, t, &q, NULL)) return 0;
  const int64_t of[] = {q.p.a_type, q.chunks, q.p.args.n, q.p.args.k, own_products(&q)};
  return hn_cuda_shared_blob("few", of, sizeof of / sizeof *of, key);
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
  hn_str text = {0};
  hn_str_printf(&text,
                "#define HN_T %s\n#define BM %u\n#define BN %u\n#define WARPS %d\n#define HN_CHUNKS %u\n"
                "#define HN_TOGETHER %u\n#define BLOCKS %u\n",
                hone_dtype_name(q.p.a_type), t->bm, t->bn, WARPS, q.chunks, t->together, t->blocks);
  hn_cuda_shape shape = {.threads = 32 * WARPS, .shared = (uint32_t)shared_of(t)};
  return hn_product_launch(run, &q.p, &text, "product_few", &shape, error);
}
