#include "backends/cuda/quantized/codes_turned.h"

#include <string.h>

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/quantized/codes_border.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"

typedef struct problem {
  hn_codes c;
  hn_turned t;
  hn_codes_border border;
} problem;

static hn_codes_blob blob_of(const problem *q) { return hn_codes_blob_of(&q->c, hn_turned_weights(&q->t)); }

static size_t bytes_of(const problem *q) { return q->t.bordered ? q->border.bytes : blob_of(q).bytes; }

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c, problem *q,
                     hone_reason *why) {
  memset(&q->t, 0, sizeof q->t);
  hn_wgmma_problem *w = &q->t.q;
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_codes_product(s, &q->c, &w->p, why)) return false;
  w->outside = q->c.x_zero != 0, w->pairs = true;
  w->mended = w->outside && w->p.conv && !w->p.one_tap && hn_codes_border_of(&w->p, 0, &q->border);
  if (!hn_wgmma_fits(w, why)) return false;
  q->t.bordered = w->outside && !w->p.one_tap && w->mode == HN_WGMMA_IM2COL;
  w->table = q->c.table;
  w->staged = q->c.added != HONE_DTYPE_NONE, w->unread = hn_wgmma_unread(s, w);
  if (!hn_turned_tiles(&q->t, m, c, why)) return false;
  return !q->t.bordered || hn_codes_border_of(&w->p, blob_of(q).bytes, &q->border);
}

static hone_status describe_again(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                                  problem *q, hone_error *error) {
  hone_reason why = {""};
  return describe(s, m, c, q, &why) ? HONE_OK : hn_not_described(s, &why, error);
}

bool hn_codes_turned_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                             hone_reason *why) {
  problem q;
  return describe(s, m, c, &q, why);
}

double hn_codes_turned_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c) {
  problem q;
  return describe(s, m, c, &q, NULL) ? hn_turned_seconds(m, &q.t) : HN_REFUSED_SECONDS;
}

hone_status hn_codes_turned_need(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                                 hone_tactic_need *need, hone_error *error) {
  problem q;
  const hone_status st = describe_again(s, m, c, &q, error);
  if (st) return st;
  need->blob_bytes = bytes_of(&q);
  need->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

hone_status hn_codes_turned_prepack(const hone_step *s, const hone_machine *m,
                                    const hn_wgmma_turned_config *c, void *blob, hone_error *error) {
  problem q;
  const hone_status st = describe_again(s, m, c, &q, error);
  if (st) return st;
  int8_t *weights = hn_codes_weights(s, &q.c);
  if (!weights)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const hn_codes_blob b = blob_of(&q);
  hn_wgmma_pack(&q.c.inner, &q.t.q, q.t.q.n16 / 8, blob);
  hn_codes_vectors(s, &q.c, weights, &b, blob);
  if (q.t.bordered) hn_codes_border_fill(&q.c, &q.t.q.p, weights, &q.border, blob);
  hn_free(weights);
  return HONE_OK;
}

void hn_codes_turned_work(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                          hone_work *work) {
  (void)s, (void)m, (void)c;
  work->arithmetic = HONE_ARITHMETIC_INT8;
}

hone_status hn_codes_turned_run(const hone_step_run *run, const hn_wgmma_turned_config *c,
                                hone_error *error) {
  problem q;
  char more[128];
  hone_status st = describe_again(run->step, hn_cuda_machine(hn_cuda_queue_of(run)), c, &q, error);
  if (st) return st;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(run, &b, &q.c);
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  args.codes = q.c.args;
  hn_str text = {0};
  if (q.t.bordered) {
    args.border = (const char *)run->blob + q.border.classes,
    args.lacking = (const char *)run->blob + q.border.vectors;
    args.border_columns = (i32)q.border.columns, args.border_pitch = (i32)q.border.pitch;
    hn_str_puts(&text, "#define HN_BORDER 1\n");
  }
  if (q.t.q.p.args.n % 16) hn_str_puts(&text, "#define HN_MASKED 1\n");
  hn_str_puts(&text, hn_codes_prefix(&q.c, false, more, sizeof more));
  hn_turned_prefix(&q.t, c, &text);
  st = hn_turned_launch(run, &q.t, q.c.args.added, &args, &text, error);
  hn_str_free(&text);
  return st;
}
