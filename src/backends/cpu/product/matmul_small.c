/* MatMul of many small matrices, none of which is worth the packing and the tiles of matmul_tiles: capsules,
 * states of a recurrence, linear attention. A row of the result stands in registers or, where B is a column,
 * is sums of products that lie side by side. */
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"

enum { LANES = 8, MOST_COLUMNS = 64, MOST_PRODUCTS = 4096, FEWEST = 8, PER_TASK = 65536 /* products */ };

typedef struct head {
  int64_t m, n, k;
  hn_nest nest; /* over the batch; operands: result, A, B */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  (void)m;
  memset(h, 0, sizeof *h);
  if (s->n_epilogue) return hn_refuse(why, "it has an epilogue");
  if (!hn_step_plain_f32(a) || !hn_step_plain_f32(b) || !hn_step_plain_f32(y))
    return hn_refuse(why, "an operand is not row-major f32");
  if (a->rank < 2 || b->rank < 2 || y->rank < 3) return hn_refuse(why, "it is one product");
  h->m = a->dim[a->rank - 2], h->k = a->dim[a->rank - 1], h->n = b->dim[b->rank - 1];
  if (b->dim[b->rank - 2] != h->k) return hn_refuse(why, "inner dimensions differ");
  const int32_t batch = y->rank - 2;
  int64_t at[3][HONE_MAX_RANK], step[3] = {h->m * h->n, h->m * h->k, h->k * h->n}, count = 1;
  const hone_tensor_desc *d[3] = {y, a, b};
  for (int32_t i = batch - 1; i >= 0; i--) {
    for (int o = 0; o < 3; o++) {
      const int32_t own = i - (y->rank - d[o]->rank);
      const int64_t size = own < 0 ? 1 : d[o]->dim[own];
      at[o][i] = size == 1 ? 0 : step[o];
      step[o] *= size;
    }
    count *= y->dim[i];
  }
  if (count < FEWEST) return hn_refuse(why, "fewer than %d matrices", FEWEST);
  if (h->m < 1 || h->n < 1 || h->k < 1 || h->n > MOST_COLUMNS || h->k > MOST_PRODUCTS ||
      h->m > MOST_PRODUCTS / (h->n * h->k))
    return hn_refuse(why, "the matrices are large, or empty");
  hn_nest_begin(&h->nest, batch, y->dim);
  for (int o = 0; o < 3; o++) hn_nest_add(&h->nest, at[o]);
  hn_nest_finish(&h->nest);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double each =
      15e-9 + (double)(h.m * hn_div_up(h.n == 1 ? h.k : h.n, LANES) * LANES * (h.n == 1 ? 1 : h.k)) * 0.2e-9;
  return hn_step_seconds(m, 0, s->cost.bytes, 1) +
         each * (double)hn_nest_count(&h.nest) / (m->threads > 0 ? m->threads : 1);
}

static float dot(const float *restrict a, const float *restrict b, int64_t n) {
  float sum[LANES] = {0}, all = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) sum[l] += a[i + l] * b[i + l];
  for (; i < n; i++) all += a[i] * b[i];
  for (int half = LANES / 2; half; half /= 2)
    for (int l = 0; l < half; l++) sum[l] += sum[l + half];
  return all + sum[0];
}

/* y[n] = a[k] B, a block of columns after the other. */
static void row(float *restrict y, const float *restrict a, const float *restrict b, int64_t k, int64_t n) {
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES) {
    float sum[LANES] = {0};
    for (int64_t i = 0; i < k; i++)
      for (int l = 0; l < LANES; l++) sum[l] += a[i] * b[i * n + j + l];
    memcpy(y + j, sum, sizeof sum);
  }
  for (; j < n; j++) {
    float sum = 0;
    for (int64_t i = 0; i < k; i++) sum += a[i] * b[i * n + j];
    y[j] = sum;
  }
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t count, at_once; /* matrices: all, a task's */
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  const hn_nest *nest = &h->nest;
  const int32_t last = nest->rank - 1;
  const int64_t inner = nest->dim[last], end = hn_min(j->count, (index + 1) * j->at_once);
  (void)thread;
  for (int64_t at = index * j->at_once, some; at < end; at += some) {
    const int64_t outer = at / inner, first = at % inner;
    some = hn_min(inner - first, end - at);
    float *y = (float *)j->run->out[0] + hn_nest_offset(nest, 0, outer, 1) + first * nest->stride[0][last];
    const float *a = (const float *)j->run->in[0] + hn_nest_offset(nest, 1, outer, 1) +
                     first * nest->stride[1][last],
                *b = (const float *)j->run->in[1] + hn_nest_offset(nest, 2, outer, 1) +
                     (HN_FAULT("matmul_small_column") ? 0 : first * nest->stride[2][last]);
    for (int64_t i = 0; i < some; i++) {
      for (int64_t r = 0; r < h->m; r++)
        if (h->n == 1)
          y[r] = dot(a + r * h->k, b, h->k);
        else
          row(y + r * h->n, a + r * h->k, b, h->k, h->n);
      y += nest->stride[0][last], a += nest->stride[1][last], b += nest->stride[2][last];
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .count = hn_nest_count(&h->nest)};
  (void)error;
  j.at_once = hn_max(1, PER_TASK / (h->m * h->n * h->k));
  const int64_t tasks = hn_div_up(j.count, j.at_once);
  if (tasks == 1)
    task(&j, 0, 0);
  else if (tasks)
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, matmul_small, "MatMul", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
