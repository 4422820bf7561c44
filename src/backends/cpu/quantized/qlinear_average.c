/* Quantised GlobalAveragePool, channels-last: the sum of a channel's codes less their zero points is exact,
 * then one multiplication by x scale / (y scale * pixels) and one rounding. */
#include <string.h>

#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/pool_int8/pool_int8.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { SLAB = 256 }; /* channels of a task */

typedef struct blob_head {
  hn_isa isa;
  int64_t batch, channels, pixels, pixel; /* pixel: bytes from one to the next */
  float scale, y_zero;
  int32_t x_zero;
  bool x_signed, y_signed;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  const hone_tensor_desc *x = &s->input[HN_QLINEAR_X].desc, *y = &s->output[0].desc;
  hn_pixels xp, yp;
  hn_qlinear_ends e;
  if (!hn_qlinear_ends_of(s, &e, why)) return false;
  if (!hn_pixels_of(x, &xp) || !hn_pixels_of(y, &yp) || !xp.even)
    return hn_refuse(why, "tensors are not channels-last of rank 3 to 5");
  h->isa = hn_isa_of(m->isa);
  if (!hn_quantize_find(h->isa)) return hn_refuse(why, "no quantisation kernel for %s", hn_isa_name(h->isa));
  h->batch = xp.batch, h->channels = xp.channels, h->pixel = xp.view.pixel;
  h->pixels = xp.size[0] * xp.size[1] * xp.size[2];
  if (h->pixels > INT32_MAX / 255) return hn_refuse(why, "too many pixels for sums of 32 bits");
  h->scale = e.x_scale / (e.y_scale * (float)h->pixels);
  h->x_zero = (int32_t)e.x_zero, h->y_zero = e.y_zero;
  h->x_signed = e.x_signed, h->y_signed = e.y_signed;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, 4 * n, n, 0.25);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const int64_t slabs = hn_div_up(h->channels, SLAB), n = i / slabs, c0 = i % slabs * SLAB;
  const int64_t width = h->channels - c0 < SLAB ? h->channels - c0 : SLAB;
  const uint8_t *x = (const uint8_t *)r->in[HN_QLINEAR_X] + n * h->pixels * h->pixel + c0;
  int32_t sum[SLAB];
  float real[SLAB];
  (void)thread;
  for (int64_t c = 0; c < width; c++) sum[c] = -h->x_zero * (int32_t)h->pixels;
  hn_pool_int8_find(h->isa)->sum(sum, x, h->pixel, (size_t)h->pixels, (size_t)width, h->x_signed);
  for (int64_t c = 0; c < width; c++) real[c] = (float)sum[c];
  hn_quantize_find(h->isa)->requantize((uint8_t *)r->out[0] + n * h->channels + c0, real, (size_t)width,
                                       &h->scale, &h->y_zero, false, h->y_signed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, h->batch * hn_div_up(h->channels, SLAB), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, qlinear_average, "QLinearAveragePool", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
