/* Conv from few channels to few, of one to three dimensions, one group, channels-last, weights known. */
#include "backends/cpu/conv/conv_packed.h"
#include "backends/cpu/conv/planes_driver.h"
#include "backends/cpu/kernels/features.h"

enum { MOST_CHANNELS = 8, MOST_OUTPUTS = 128 }; /* more are a matrix product's matter */

typedef struct blob_head {
  hn_planes plan;
  hn_conv_packed packed;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  if (!hn_conv_packed_of(s, m, &h->packed, &a, why) || !hn_window_fits(&a, why)) return false;
  if (a.groups != 1) return hn_refuse(why, "several groups");
  if (a.cin > MOST_CHANNELS || a.cout > MOST_OUTPUTS)
    return hn_refuse(why, "more than %d input or %d output channels", MOST_CHANNELS, MOST_OUTPUTS);
  if (a.kernel[0] * a.kernel[1] * a.cin > HN_PLANES_ROWS || a.kernel[2] > HN_PLANES_TAPS)
    return hn_refuse(why, "more than %d rows of a kernel, or %d columns", HN_PLANES_ROWS, HN_PLANES_TAPS);
  if (a.stride[2] > HN_PLANES_STRIDE) return hn_refuse(why, "a stride of more than %d", HN_PLANES_STRIDE);
  if (!hn_planes_find(h->packed.isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->packed.isa));
  h->plan = (hn_planes){.batch = a.x.batch,
                        .channels = a.cin,
                        .outputs = a.cout,
                        .window = hn_window_of(&a),
                        .in_batch = a.x.view.batch,
                        .in_pixel = a.x.view.pixel,
                        .y = a.y.view};
  hn_planes_plan(&h->plan, hn_planes_find(h->packed.isa)->vw, m->threads, m->l2);
  hn_conv_packed_place(&h->packed, sizeof *h, hn_planes_packed_size(&h->plan),
                       hn_planes_scratch(&h->plan) * sizeof(float));
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_planes_seconds(&h->plan, hn_planes_find(h->packed.isa), m, h->packed.isa) +
         hn_epilogue_seconds(s, m, true);
}

HN_CONV_PACKED(blob_head, hn_planes_pack)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  const float *bias = hn_step_bias(s, r->in);
  hn_epilogue e;
  hn_epilogue_bind(s, h->packed.isa, false, bias, r->in, &e);
  if (e.residual) hn_epilogue_bind_rows(s, h->packed.isa, false, bias, r->in, &e);
  const hn_planes_args a = {&h->plan,    hn_planes_find(h->packed.isa),
                            r->in[0],    hn_shared_at(r, h->packed.weights_at),
                            r->out[0],   &e,
                            r->workspace};
  hn_planes_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_planes, "Conv", 3, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
