#include "backends/cuda/quantized/codes_wgmma.h"

#include <string.h>

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/quantized/codes_border.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"

typedef struct problem {
  hn_codes c;
  hn_wgmma_problem w;
  hn_codes_border border;
} problem;

static hn_codes_blob blob_of(const problem *q) { return hn_codes_blob_of(&q->c, hn_wgmma_weights(&q->w)); }

/* Taps outside of an image read zeros, which are not what they mean. */
static bool has_border(const problem *q) {
  return q->w.outside && !q->w.p.one_tap && q->w.mode == HN_WGMMA_IM2COL;
}

static size_t bytes_of(const problem *q) { return has_border(q) ? q->border.bytes : blob_of(q).bytes; }

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, problem *q,
                     hone_reason *why) {
  memset(&q->w, 0, sizeof q->w);
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_codes_product(s, &q->c, &q->w.p, why)) return false;
  q->w.outside = q->c.x_zero != 0;
  q->w.mended = q->w.outside && q->w.p.conv && !q->w.p.one_tap && hn_codes_border_of(&q->w.p, 0, &q->border);
  if (!hn_wgmma_fits(&q->w, why)) return false;
  if (has_border(q)) hn_codes_border_of(&q->w.p, blob_of(q).bytes, &q->border);
  q->w.staged = q->c.added != HONE_DTYPE_NONE && !t->split;
  q->w.table = q->c.table, q->w.unread = hn_wgmma_unread(s, &q->w);
  return hn_wgmma_tiles(&q->w, m, t, why);
}

static hone_status describe_again(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                                  problem *q, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, t, q, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

bool hn_codes_wgmma_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                            hone_reason *why) {
  problem q;
  return describe(s, m, t, &q, why);
}

double hn_codes_wgmma_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t) {
  problem q;
  return describe(s, m, t, &q, NULL) ? hn_wgmma_seconds(&q.w, m, t, q.w.splits) : HN_REFUSED_SECONDS;
}

hone_status hn_codes_wgmma_need(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                                hone_tactic_need *need, hone_error *error) {
  problem q;
  hone_status st = describe_again(s, m, t, &q, error);
  if (st) return st;
  need->blob_bytes = bytes_of(&q);
  need->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

hone_status hn_codes_wgmma_prepack(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t,
                                   void *blob, hone_error *error) {
  problem q;
  hone_status st = describe_again(s, m, t, &q, error);
  if (st) return st;
  int8_t *weights = hn_codes_weights(s, &q.c);
  if (!weights)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const hn_codes_blob b = blob_of(&q);
  hn_wgmma_pack(&q.c.inner, &q.w, q.w.n16 / 8, blob);
  hn_codes_vectors(s, &q.c, weights, &b, blob);
  if (has_border(&q)) hn_codes_border_fill(&q.c, &q.w.p, weights, &q.border, blob);
  hn_free(weights);
  return HONE_OK;
}

void hn_codes_wgmma_work(const hone_step *s, const hone_machine *m, const hn_wgmma_tile *t, hone_work *work) {
  (void)s, (void)m, (void)t;
  work->arithmetic = HONE_ARITHMETIC_INT8;
}

hone_status hn_codes_wgmma_run(const hone_step_run *run, const hn_wgmma_tile *t, hone_error *error) {
  problem q;
  char more[128];
  hone_status st = describe_again(run->step, hn_cuda_machine(hn_cuda_queue_of(run)), t, &q, error);
  if (st) return st;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(run, &b, &q.c);
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]) ||
      !hn_product_aligned(q.c.args.added))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", run->step->anchor);
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  args.codes = q.c.args;
  hn_str text = {0};
  if (has_border(&q)) {
    args.border = (const char *)run->blob + q.border.classes,
    args.lacking = (const char *)run->blob + q.border.vectors;
    args.border_columns = (i32)q.border.columns, args.border_pitch = (i32)q.border.pitch;
    hn_str_puts(&text, "#define HN_BORDER 1\n");
  }
  if (q.w.p.args.n % 16) hn_str_puts(&text, "#define HN_MASKED 1\n");
  hn_wgmma_prefix(&q.w, t, &text);
  hn_str_puts(&text, hn_codes_prefix(&q.c, q.w.mode == HN_WGMMA_GATHER, more, sizeof more));
  st = hn_wgmma_launch(run, &q.w, t, q.c.args.added, &args, &text, error);
  hn_str_free(&text);
  return st;
}
