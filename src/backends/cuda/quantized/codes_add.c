/* QLinearAdd: the sum of two tensors of codes of one shape (codes_add.cu). */
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/quantized/codes_add_args.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

typedef struct sum {
  hn_codes_add_args args;
  bool rows;
} sum;

/* Dense in either layout, padding of pixels included. */
static bool dense(const hone_tensor_desc *d) {
  hone_tensor_desc plain = *d;
  hone_desc_set_layout(&plain, d->layout, d->layout == HONE_LAYOUT_CHANNELS_LAST ? d->channel_pitch : 0);
  return memcmp(plain.stride, d->stride, (size_t)d->rank * sizeof *d->stride) == 0;
}

static bool describe(const hone_step *s, sum *q, hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (s->n_anchor_inputs < HN_QLINEAR_Y_ZERO + 1 || s->n_epilogue)
    return hn_refuse(why, "inputs are missing, or there is an epilogue");
  if (!hn_cuda_known(s, why)) return false;
  const hone_tensor_desc *a = &s->input[HN_QLINEAR_X].desc, *b = &s->input[HN_QLINEAR_W].desc,
                         *y = &s->output[0].desc;
  if (!hn_codes_type(a->dtype) || !hn_codes_type(b->dtype) || !hn_codes_type(y->dtype))
    return hn_refuse(why, "a tensor has no codes of 8 bits");
  if (!hone_desc_same_dims(a, y) || !hone_desc_same_dims(b, y) || a->layout != y->layout ||
      b->layout != y->layout || a->channel_pitch != y->channel_pitch || b->channel_pitch != y->channel_pitch)
    return hn_refuse(why, "the tensors are not of one shape and layout");
  if (!dense(a) || !dense(b) || !dense(y)) return hn_refuse(why, "a tensor is not dense");
  hn_codes_sum *c = &q->args.sum;
  if (!hn_codes_number(s, HN_QLINEAR_X_SCALE, &c->a_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_X_ZERO, &c->a_zero, why) ||
      !hn_codes_number(s, HN_QLINEAR_W_SCALE, &c->b_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_W_ZERO, &c->b_zero, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_SCALE, &c->y_scale, why) ||
      !hn_codes_number(s, HN_QLINEAR_Y_ZERO, &c->y_zero, why) || !hn_codes_sum_of(c, why))
    return false;
  const bool last = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->rank > 2;
  const int64_t count = hone_desc_bytes(y), length = last ? y->channel_pitch : count;
  q->rows = last && length % 16 == 0;
  if (last && !q->rows && length > y->dim[1]) return hn_refuse(why, "pixels are not whole sixteens of bytes");
  if (count > INT32_MAX) return hn_refuse(why, "more than 2^31 codes");
  q->args.sixteens = (u32)hn_div_up(count, 16);
  q->args.row = hn_cuda_divisor((u32)(q->rows ? length / 16 : count ? q->args.sixteens : 1));
  q->args.length = (u32)(q->rows ? y->dim[1] : count);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  sum q;
  (void)m;
  return describe(s, &q, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, 0, 0, 3.0 * (double)hone_desc_bytes(&s->output[0].desc), 0.8);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  sum q;
  hone_reason why = {""};
  if (!describe(s, &q, &why)) return hn_not_described(s, &why, error);
  q.args.a = r->in[HN_QLINEAR_X], q.args.b = r->in[HN_QLINEAR_W], q.args.y = r->out[0];
  const bool aligned = ((uintptr_t)q.args.a | (uintptr_t)q.args.b | (uintptr_t)q.args.y) % 16 == 0;
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_CODE %s\n#define HN_A %s\n#define HN_B %s\n#define HN_W %d\n%s",
                hone_dtype_name(s->output[0].desc.dtype), hone_dtype_name(s->input[HN_QLINEAR_X].desc.dtype),
                hone_dtype_name(s->input[HN_QLINEAR_W].desc.dtype), aligned ? 16 : 1,
                q.rows ? "#define HN_ROWS 1\n" : "");
  const hone_status st = hn_cuda_launch_line(hn_cuda_queue_of(r), "codes_add", &text, "codes_add",
                                             q.args.sixteens, 256, &q.args, sizeof q.args, error);
  hn_str_free(&text);
  return st;
}

HN_TACTIC(cuda, codes_add, "QLinearAdd", 1, .accepts = accepts, .cost = cost, .run = run);
