/* A channels-last tensor of codes times one code a channel (squeeze and excitation's gate), as quantisation
 * of the product of what the codes mean. */
#include <string.h>

#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

/* Gates of a few pixels lie one behind the other, so that whole vectors of codes meet them. */
enum { GATES = 2048, WHOLE = 64, TASK = 32768 };

typedef struct blob_head {
  hn_isa isa;
  int64_t batch, channels, pixels, period, task; /* period, task: codes */
  hn_quantize_mul mul;
  float b_scale, b_zero;
  bool b_signed;
} blob_head;

static bool is_scale(float f) { return f >= 0x1p-30f && f <= 0x1p30f; }

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  const hone_tensor_desc *a = &s->input[HN_QLINEAR_X].desc, *b = &s->input[HN_QLINEAR_W].desc,
                         *y = &s->output[0].desc;
  hn_pixels ap, bp, yp;
  hn_qlinear_ends e;
  if (!hn_qlinear_ends_of(s, &e, why) || !hn_qlinear_codes(b, why)) return false;
  if (!hn_pixels_of(a, &ap) || !hn_pixels_of(b, &bp) || !hn_pixels_of(y, &yp) || !hone_desc_same_dims(a, y))
    return hn_refuse(why, "tensors are not channels-last of one shape and rank 3 to 5");
  h->isa = hn_isa_of(m->isa);
  h->batch = ap.batch, h->channels = ap.channels, h->pixels = ap.size[0] * ap.size[1] * ap.size[2];
  if (bp.batch != h->batch || bp.channels != h->channels || bp.size[0] * bp.size[1] * bp.size[2] != 1)
    return hn_refuse(why, "the second operand is not one number a channel");
  if (h->channels > GATES) return hn_refuse(why, "more than %d channels", (int)GATES);
  if (!hn_qlinear_param(s, HN_QLINEAR_W_SCALE, &h->b_scale, why) ||
      !hn_qlinear_param(s, HN_QLINEAR_W_ZERO, &h->b_zero, why))
    return false;
  if (!is_scale(e.x_scale) || !is_scale(h->b_scale) || !is_scale(e.y_scale))
    return hn_refuse(why, "a scale is not positive, or far from 1");
  if (!hn_quantize_find(h->isa)) return hn_refuse(why, "no quantisation kernel for %s", hn_isa_name(h->isa));
  h->mul = (hn_quantize_mul){e.x_scale, e.x_zero, e.y_scale, e.y_zero, e.x_signed, e.y_signed};
  h->b_signed = b->dtype == HONE_DTYPE_I8;
  h->period = h->channels;
  while (h->period % WHOLE && 2 * h->period <= GATES) h->period *= 2;
  const int64_t pixels = TASK / h->channels;
  h->task = hn_div_up(pixels * h->channels, h->period) * h->period;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, 8 * n, 2 * n, 0.5);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_quantize_ops *ops = hn_quantize_find(h->isa);
  const int64_t picture = h->channels * h->pixels, tasks = hn_div_up(picture, h->task), n = i / tasks,
                at = i % tasks * h->task, count = picture - at < h->task ? picture - at : h->task;
  float b[GATES], k[GATES];
  (void)thread;
  ops->dequantize(b, (const char *)r->in[HN_QLINEAR_W] + n * h->channels, (size_t)h->channels, &h->b_scale,
                  &h->b_zero, false, h->b_signed);
  for (int64_t c = 0; c < h->channels; c++) k[c] = h->mul.a_scale * b[c] / h->mul.y_scale;
  for (int64_t c = h->channels; c < h->period; c++) b[c] = b[c - h->channels], k[c] = k[c - h->channels];
  ops->mul((char *)r->out[0] + n * picture + at, (const char *)r->in[HN_QLINEAR_X] + n * picture + at,
           (size_t)count, b, k, (size_t)h->period, &h->mul);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, h->batch * hn_div_up(h->channels * h->pixels, h->task), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, qlinear_mul, "QLinearMul", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
