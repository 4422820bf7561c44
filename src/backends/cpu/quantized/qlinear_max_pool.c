/* MaxPool of codes whose result has the same codes: the largest code is that of the largest value. */
#include <string.h>

#include "backends/cpu/pooling/pooling.h"
#include "backends/cpu/quantized/qlinear_step.h"
#include "backends/cpu/kernels/pool_int8/pool_int8.h"
#include "backends/tactic.h"
#include "base/error.h"

enum { MAX_TAPS = 1024 };

typedef struct blob_head {
  hn_pooling p;
  bool is_signed;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  hn_qlinear_ends e;
  if (!hn_qlinear_ends_of(s, &e, why)) return false;
  if (e.x_scale != e.y_scale || e.x_zero != e.y_zero || e.x_signed != e.y_signed)
    return hn_refuse(why, "input and output have different codes");
  if (!(e.x_scale > 0)) return hn_refuse(why, "the scale is not positive");
  hone_step_tensor x = {.desc = s->input[HN_QLINEAR_X].desc}, y = {.desc = s->output[0].desc};
  h->is_signed = e.x_signed;
  x.desc.dtype = y.desc.dtype = HONE_DTYPE_F32;
  const hone_step real = {
      HONE_DESC_HEAD(hone_step), .anchor = "MaxPool", .name = s->name, .node = s->node, .n_inputs = 1,
      .n_anchor_inputs = 1,      .input = &x,         .n_outputs = 1,  .output = &y,    .cost = s->cost};
  if (!hn_pooling_of(&real, m, true, &h->p, why)) return false;
  if (h->p.kernel[0] * h->p.kernel[1] * h->p.kernel[2] > MAX_TAPS)
    return hn_refuse(why, "more than %d taps", MAX_TAPS);
  return hn_pool_int8_find(h->p.isa) || hn_refuse(why, "no kernel");
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double taps = (double)(h.p.kernel[0] * h.p.kernel[1] * h.p.kernel[2]),
               in = (double)hone_desc_count(&s->input[0].desc),
               out = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, taps * out / 2, in + out, 0.3);
}

/* One row of output pixels. */
static void task(void *arg, int64_t row, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_pooling *p = &h->p;
  const hn_pool_int8_ops *ops = hn_pool_int8_find(p->isa);
  const int64_t oy = row % p->y.size[1], oz = row / p->y.size[1] % p->y.size[0],
                n = row / p->y.size[1] / p->y.size[0];
  const uint8_t *x = r->in[HN_QLINEAR_X], *line[MAX_TAPS], *tap[MAX_TAPS];
  uint8_t *y = (uint8_t *)r->out[0] + hn_view_at(&p->y.view, n, oz, oy, 0);
  int64_t lines = 0;
  (void)thread;
  for (int64_t i = 0; i < p->kernel[0]; i++)
    for (int64_t j = 0; j < p->kernel[1]; j++) {
      const int64_t iz = oz * p->stride[0] + i * p->dilation[0] - p->begin[0],
                    iy = oy * p->stride[1] + j * p->dilation[1] - p->begin[1];
      if (iz >= 0 && iz < p->x.size[0] && iy >= 0 && iy < p->x.size[1])
        line[lines++] = x + hn_view_at(&p->x.view, n, iz, iy, 0);
    }
  for (int64_t ox = 0; ox < p->y.size[2]; ox++, y += p->y.view.pixel) {
    size_t taps = 0;
    for (int64_t k = 0; k < p->kernel[2]; k++) {
      const int64_t ix = ox * p->stride[2] + k * p->dilation[2] - p->begin[2];
      if (ix < 0 || ix >= p->x.size[2]) continue;
      for (int64_t i = 0; i < lines; i++) tap[taps++] = line[i] + ix * p->x.view.pixel;
    }
    ops->max(y, tap, taps, (size_t)p->x.channels, h->is_signed);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hn_pooling *p = &((const blob_head *)r->blob)->p;
  (void)error;
  r->parallel(r->pool, p->y.batch * p->y.size[0] * p->y.size[1], task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, qlinear_max_pool, "QLinearMaxPool", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
