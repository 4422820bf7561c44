/* QLinearConv (with a sum, with a table) of few channels on strips of pixels (conv_strip.cu, arch 90). */
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/quantized/codes_border.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/wgmma/conv_strip.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

enum { VECTOR = 16 };

typedef struct problem {
  hn_codes c;
  hn_product product;
  hn_conv_attr a;
  hn_strip_plan p;
  hn_codes_border border;
} problem;

static hn_codes_blob blob_of(const problem *q) { return hn_codes_blob_of(&q->c, hn_strip_weights(&q->p)); }

static size_t bytes_of(const problem *q) { return q->p.bordered ? q->border.bytes : blob_of(q).bytes; }

static bool describe(const hone_step *s, const hone_machine *m, problem *q, hone_reason *why) {
  if (!hn_codes_product(s, &q->c, &q->product, why) || !hn_conv_attr_of(&q->c.inner, &q->a, why))
    return false;
  const hn_conv_attr *a = &q->a;
  if (a->x.view.pixel % VECTOR || a->x.view.row % VECTOR || a->x.view.batch % VECTOR ||
      a->y.view.pixel % VECTOR || a->y.view.row % VECTOR || a->y.view.batch % VECTOR ||
      a->y.view.pixel < hn_fill_up(a->cout, VECTOR) ||
      (a->cout % VECTOR && a->y.view.pixel != hn_fill_up(a->cout, VECTOR)))
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  q->p = (hn_strip_plan){
      .size = 1, .staged = q->c.added != HONE_DTYPE_NONE, .bordered = q->c.x_zero != 0, .table = q->c.table};
  if (!hn_strip_plan_of(m, a, &q->p, why)) return false;
  return !q->p.bordered || hn_codes_border_of(&q->product, blob_of(q).bytes, &q->border) ||
         hn_refuse(why, "more kinds of border pixels than are worth it");
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  problem q;
  return describe(s, m, &q, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  problem q;
  return describe(s, m, &q, NULL) ? hn_strip_seconds(m, &q.p, q.product.bytes) : HN_REFUSED_SECONDS;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = bytes_of(&q);
  n->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  const int64_t taps = q.a.kernel[1] * q.a.kernel[2];
  const hn_codes_blob b = blob_of(&q);
  int8_t *w = hn_codes_weights(s, &q.c), *to = blob;
  if (!w)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  for (int64_t k = 0; k < q.p.blocks; k++)
    for (int64_t step = 0; step < q.p.steps; step++)
      for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 16; i++, to++) {
          const hn_strip_weight at = hn_strip_weight_of(&q.p, k, step, thread, i);
          if (at.n < q.a.cout && at.c < q.a.cin) *to = w[(at.n * q.a.cin + at.c) * taps + at.tap];
        }
  hn_codes_vectors(s, &q.c, w, &b, blob);
  if (q.p.bordered) hn_codes_border_fill(&q.c, &q.product, w, &q.border, blob);
  hn_free(w);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  problem q;
  hone_reason why = {""};
  const hone_step *s = r->step;
  char more[128];
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(r)), &q, &why)) return hn_not_described(s, &why, error);
  const bool is_signed = s->input[0].desc.dtype == HONE_DTYPE_I8;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(r, &b, &q.c);
  hn_conv_strip_args g;
  memset(&g, 0, sizeof g);
  g.codes = q.c.args, g.channels = (i32)q.a.cout;
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_T %s\n#define HN_CODE %s\n%s%s%s", hone_dtype_name(s->input[0].desc.dtype),
                hone_dtype_name(s->output[0].desc.dtype), hn_codes_prefix(&q.c, false, more, sizeof more),
                q.p.bordered ? "#define HN_BORDER 1\n" : "", q.a.cout % 16 ? "#define HN_MASKED 1\n" : "");
  if (q.p.bordered) {
    g.border = (const char *)r->blob + q.border.classes, g.lacking = (const char *)r->blob + q.border.vectors;
    g.border_columns = (i32)q.border.columns, g.border_pitch = (i32)q.border.pitch;
  }
  hn_strip_prefix(&q.a, &q.p, &text);
  hn_wgmma_write_codes_product(&text, "hn_wgmma_first", is_signed, q.p.n, false);
  hn_wgmma_write_codes_product(&text, "hn_wgmma_add", is_signed, q.p.n, true);
  const hone_status st = hn_strip_launch(r, &q.a, &q.p, q.c.args.added, &g, &text, error);
  hn_str_free(&text);
  return st;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)s, (void)m;
  w->arithmetic = HONE_ARITHMETIC_INT8;
}

HN_TACTIC(cuda, codes_strip_wgmma, "QLinearConv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cuda, codes_strip_add_wgmma, "QLinearConvAdd", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cuda, codes_strip_table_wgmma, "QLinearConvTable", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run, .work = work);
