/* Sum of two quantised tensors of one shape, as quantisation of the sum of what the codes mean. */
#include <math.h>

#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

typedef struct blob_head {
  hn_isa isa;
  int64_t count;
  hn_quantize_add add;
} blob_head;

static bool is_scale(float f) { return f > 0x1p-100f && f < 0x1p100f; }

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  *h = (blob_head){.isa = hn_isa_of(m->isa)};
  const hone_tensor_desc *a = &s->input[HN_QLINEAR_X].desc, *b = &s->input[HN_QLINEAR_W].desc,
                         *y = &s->output[0].desc;
  hn_qlinear_ends e;
  if (!hn_qlinear_ends_of(s, &e, why) || !hn_qlinear_codes(b, why)) return false;
  if (!hone_desc_same_dims(a, y) || !hone_desc_same_dims(b, y) || a->layout != y->layout ||
      b->layout != y->layout)
    return hn_refuse(why, "the tensors are not of one shape and layout");
  hn_quantize_add *q = &h->add;
  if (!hn_qlinear_param(s, HN_QLINEAR_W_SCALE, &q->b_scale, why) ||
      !hn_qlinear_param(s, HN_QLINEAR_W_ZERO, &q->b_zero, why))
    return false;
  q->a_scale = e.x_scale, q->a_zero = e.x_zero, q->y_scale = e.y_scale, q->y_zero = e.y_zero;
  if (!is_scale(q->a_scale) || !is_scale(q->b_scale) || !is_scale(q->y_scale))
    return hn_refuse(why, "a scale is not positive, or far from 1");
  if (!hn_quantize_find(h->isa)) return hn_refuse(why, "no quantisation kernel for %s", hn_isa_name(h->isa));
  q->a_signed = e.x_signed, q->b_signed = b->dtype == HONE_DTYPE_I8, q->y_signed = e.y_signed;
  h->count = hone_desc_count(y);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)s, (void)m, (void)error;
  n->blob_bytes = sizeof(blob_head);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  blob_head *h = blob;
  hone_reason why = {""};
  if (!describe(s, m, h, &why)) return hn_not_described(s, &why, error);
  hn_quantize_find(h->isa)->prepare_add(&h->add);
  return HONE_OK;
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, 20 * n, 3 * n, 0.5);
}

enum { TASK = 16384 };

static void task(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const int64_t tasks = hn_div_up(h->count, TASK), at = h->count * i / tasks,
                n = h->count * (i + 1) / tasks - at;
  (void)thread;
  hn_quantize_find(h->isa)->add((char *)r->out[0] + at, (const char *)r->in[HN_QLINEAR_X] + at,
                                (const char *)r->in[HN_QLINEAR_W] + at, (size_t)n, &h->add);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const int64_t tasks = hn_div_up(((const blob_head *)r->blob)->count, TASK);
  (void)error;
  if (tasks == 1)
    task((void *)(uintptr_t)r, 0, 0);
  else
    r->parallel(r->pool, tasks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, qlinear_add, "QLinearAdd", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
