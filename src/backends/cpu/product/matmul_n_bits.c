/* MatMulNBits of few rows: codes are read where they lie, once, and decoded in registers; decoded beforehand
 * they would be 32 / bits times as many bytes to read. More rows take open_packed_weights and MatMul. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/nbits/nbits.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "model/ops/microsoft/nbits.h"

enum { A, CODES, SCALES, ZEROS, GROUPS, BIAS };

typedef struct blob_head {
  hn_isa isa;
  hn_nbits of;
  int64_t m;
  bool code_zeros, float_zeros;
} blob_head;

static bool plain(const hone_step *s, uint32_t i, hone_dtype type) {
  const hone_tensor_desc *d = &s->input[i].desc;
  return d->dtype == type && hn_step_plain(d);
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_nbits_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (hn_nbits_of(s->node, &h->of, NULL)) return hn_refuse(why, "its attributes");
  if (!plain(s, A, HONE_DTYPE_F32) || !plain(s, CODES, HONE_DTYPE_U8) || !plain(s, SCALES, HONE_DTYPE_F32) ||
      (hn_step_has(s, BIAS) && !plain(s, BIAS, HONE_DTYPE_F32)) || y->dtype != HONE_DTYPE_F32 ||
      y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "an operand is not row-major, f32 or codes, or of unknown shape");
  if (hn_step_has(s, GROUPS)) return hn_refuse(why, "rows in groups");
  if (hn_step_has(s, ZEROS)) {
    h->code_zeros = plain(s, ZEROS, HONE_DTYPE_U8);
    h->float_zeros = !h->code_zeros;
    if (h->float_zeros && !plain(s, ZEROS, HONE_DTYPE_F32))
      return hn_refuse(why, "zero points are neither codes nor f32");
  }
  h->m = hone_desc_count(&s->input[A].desc) / h->of.rows;
  if (h->m < 1) return hn_refuse(why, "an empty operand");
  return true;
}

static hn_nbits_matrix matrix(const blob_head *h) {
  return (hn_nbits_matrix){.zero_row = (size_t)((h->of.blocks * h->of.bits + 7) / 8),
                           .blocks = (size_t)h->of.blocks,
                           .block_bytes = (size_t)(h->of.block * h->of.bits / 8),
                           .bits = (uint32_t)h->of.bits};
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.3);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  const hn_nbits_matrix w = matrix(&h);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = (size_t)h.m * hn_nbits_find(h.isa)->packed(&w) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const hn_nbits_ops *ops;
  hn_nbits_matrix w;
  int64_t per_task;
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t from = index * j->per_task, n = j->h->of.columns,
                end = from + j->per_task < n ? from + j->per_task : n;
  (void)thread;
  j->ops->product(&j->w, j->run->workspace, (size_t)j->h->m, (size_t)from, (size_t)end,
                  hn_step_has(j->run->step, BIAS) ? j->run->in[BIAS] : NULL, j->run->out[0], n);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  job j = {r, h, hn_nbits_find(h->isa), matrix(h), 0};
  (void)error;
  j.w.codes = r->in[CODES], j.w.scales = r->in[SCALES];
  if (h->code_zeros) j.w.zeros = r->in[ZEROS];
  if (h->float_zeros) j.w.zero_floats = r->in[ZEROS];
  const size_t row = j.ops->packed(&j.w);
  for (int64_t i = 0; i < h->m; i++)
    j.ops->pack(&j.w, (const float *)r->in[A] + i * h->of.rows, (size_t)h->of.rows,
                (float *)r->workspace + (size_t)i * row);
  /* A few tasks a thread, of whole vectors of columns, and none too small to be worth handing over. */
  const int64_t share = hn_div_up(h->of.columns, 4 * (int64_t)r->threads),
                least = 65536 / (h->of.rows * h->m) + 1;
  j.per_task = hn_fill_up(share > least ? share : least, 16);
  r->parallel(r->pool, hn_div_up(h->of.columns, j.per_task), task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, matmul_n_bits, "com.microsoft.MatMulNBits", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
