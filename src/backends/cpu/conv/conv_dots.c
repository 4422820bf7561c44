/* Conv to few channels, of one to three dimensions, one group, channels-last, weights known. */
#include "backends/cpu/conv/conv_packed.h"
#include "backends/cpu/conv/dots_driver.h"
#include "backends/cpu/kernels/features.h"

enum { MOST_OUTPUTS = 8 }; /* from there on tiles of the matrix product are full enough */

typedef struct blob_head {
  hn_dots plan;
  hn_conv_packed packed;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  if (!hn_conv_packed_of(s, m, &h->packed, &a, why) || !hn_window_fits(&a, why)) return false;
  if (a.groups != 1) return hn_refuse(why, "several groups");
  if (a.cout > MOST_OUTPUTS) return hn_refuse(why, "more than %d output channels", MOST_OUTPUTS);
  if (!hn_dots_find(h->packed.isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->packed.isa));
  h->plan = (hn_dots){.batch = a.x.batch,
                      .channels = a.cin,
                      .outputs = a.cout,
                      .window = hn_window_of(&a),
                      .in_batch = a.x.view.batch,
                      .in_pixel = a.x.view.pixel,
                      .y = a.y.view};
  hn_dots_plan(&h->plan, m->threads, m->l1);
  hn_conv_packed_place(&h->packed, sizeof *h, hn_dots_packed_size(&h->plan), 0);
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_dots_seconds(&h->plan, hn_dots_find(h->packed.isa), m, h->packed.isa) +
         hn_epilogue_seconds(s, m, true);
}

HN_CONV_PACKED(blob_head, hn_dots_pack)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  const float *bias = hn_step_bias(s, r->in);
  hn_epilogue e;
  hn_epilogue_bind(s, h->packed.isa, false, bias, r->in, &e);
  if (e.residual) hn_epilogue_bind_rows(s, h->packed.isa, false, bias, r->in, &e);
  const hn_dots_args a = {
      &h->plan, hn_dots_find(h->packed.isa), r->in[0], hn_shared_at(r, h->packed.weights_at), r->out[0], &e};
  hn_dots_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_dots, "Conv", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
