/* MatMul of two activations that reads the larger one once, where it lies: a few rows times a matrix, or a
 * matrix times a column, as experts that were gathered for each token are. Packing it for the tiles of
 * matmul_tiles would read it, write it and read it again. */
#include <string.h>

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"

enum { COLUMNS = 64, PER_TASK = 65536 /* products */, PART = 16384 /* elements of the larger one */ };

typedef struct head {
  hn_isa isa;
  int64_t m, n, k;
  int64_t each, parts; /* columns (of a column: rows) of the result that a task makes, and such parts of it */
  hn_nest nest;        /* over the batch; operands: result, A, B */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_attention_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (s->n_epilogue) return hn_refuse(why, "it has an epilogue");
  if (!hn_step_plain_f32(a) || !hn_step_plain_f32(b) || !hn_step_plain_f32(y))
    return hn_refuse(why, "an operand is not row-major f32");
  if (s->input[0].constant || s->input[1].constant) return hn_refuse(why, "an operand is constant");
  if (a->rank < 2 || b->rank < 2 || y->rank < 2) return hn_refuse(why, "an operand is a vector");
  h->m = a->dim[a->rank - 2], h->k = a->dim[a->rank - 1], h->n = b->dim[b->rank - 1];
  if (b->dim[b->rank - 2] != h->k) return hn_refuse(why, "inner dimensions differ");
  if (h->m < 1 || h->n < 1 || h->k < 1) return hn_refuse(why, "an empty operand");
  const bool column = h->n == 1;
  /* More rows than a narrow vector's registers hold go over the matrix again. */
  const int64_t few = hn_max(1, (int64_t)hn_attention_find(h->isa)->lanes / 2);
  if (!column && h->m > few) return hn_refuse(why, "more than %lld rows", (long long)few);
  const int32_t batch = y->rank - 2;
  int64_t at[3][HONE_MAX_RANK] = {{0}}, step[3] = {h->m * h->n, h->m * h->k, h->k * h->n}, count = 1;
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
  if (count < 1) return hn_refuse(why, "an empty operand");
  const int64_t larger = column ? h->m * h->k : h->k * h->n;
  if (hone_desc_count(column ? a : b) != count * larger)
    return hn_refuse(why, "one matrix serves several products");
  hn_nest_begin(&h->nest, batch, y->dim);
  for (int o = 0; o < 3; o++) hn_nest_add(&h->nest, at[o]);
  hn_nest_finish(&h->nest);
  const int64_t all = column ? h->m : h->n, unit = column ? 8 : COLUMNS;
  h->each = hn_min(all, hn_fill_up(hn_max(1, PART / h->k), unit));
  h->parts = hn_div_up(all, h->each);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  /* A row of kernels of dot products ends with a sum across a vector. */
  const double results = (double)hn_nest_count(&h.nest) * (double)(h.m * h.n);
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, h.n == 1 ? 0.4 : 0.8) +
         (h.n == 1 ? results * 2e-9 : 0) / (m->threads > 0 ? m->threads : 1);
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t count, at_once; /* parts: all, a task's */
} job;

static void part(const job *j, int64_t index) {
  const head *h = j->h;
  const hn_nest *nest = &h->nest;
  const hn_attention_ops *o = hn_attention_find(h->isa);
  const int64_t at = index / h->parts, from = index % h->parts * h->each;
  const int32_t last = nest->rank - 1;
  const int64_t inner = nest->rank ? nest->dim[last] : 1, outer = at / inner, first = at % inner;
  const void *const base[3] = {j->run->out[0], j->run->in[0], j->run->in[1]};
  float *place[3];
  for (int k = 0; k < 3; k++)
    place[k] =
        (float *)(uintptr_t)base[k] + hn_nest_offset(nest, k, outer, 1) +
        (nest->rank && !(k == 2 && HN_FAULT("matmul_direct_matrix")) ? first * nest->stride[k][last] : 0);
  float *y = place[0];
  const float *a = place[1], *b = place[2];
  if (h->n == 1)
    o->dots(y + from, h->m, b, h->k, 1, a + from * h->k, h->k, (size_t)hn_min(h->each, h->m - from),
            (size_t)h->k);
  else
    o->mix(y + from, h->n, a, h->k, (size_t)h->m, b + from, h->n, (size_t)h->k,
           (size_t)hn_min(h->each, h->n - from), false);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t end = hn_min(j->count, (index + 1) * j->at_once);
  (void)thread;
  for (int64_t i = index * j->at_once; i < end; i++) part(j, i);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .count = hn_nest_count(&h->nest) * h->parts};
  (void)error;
  j.at_once = hn_max(1, PER_TASK / (h->each * h->k * (h->n == 1 ? 1 : h->m)));
  const int64_t tasks = hn_div_up(j.count, j.at_once);
  if (tasks == 1)
    task(&j, 0, 0);
  else if (tasks)
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, matmul_direct, "MatMul", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
