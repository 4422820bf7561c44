/* Conv of several groups, of one or two dimensions, channels-last, weights known, by broadcasts of the input.
 */
#include "backends/cpu/conv/conv_packed.h"
#include "backends/cpu/conv/grouped_direct.h"
#include "backends/cpu/kernels/features.h"

typedef struct blob_head {
  hn_grouped_direct plan;
  hn_conv_packed packed;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  if (!hn_conv_packed_of(s, m, &h->packed, &a, why) || !hn_grouped_shape_of(&a, &h->plan.of, why))
    return false;
  if (a.kernel[1] > HN_DIRECT_ROWS || (a.kernel[1] - 1) * a.dilation[1] >= HN_DIRECT_RING)
    return hn_refuse(why, "kernels of more than %d rows or %d input rows", HN_DIRECT_ROWS, HN_DIRECT_RING);
  const hn_isa isa = h->packed.isa;
  const hn_grouped_ops *ops = hn_grouped_find(isa);
  if (!ops || !hn_gemm_find(isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(isa));
  hn_grouped_direct_plan(&h->plan, ops->vw, m->threads, m->l1, m->l2);
  hn_conv_packed_place(&h->packed, sizeof *h, hn_grouped_direct_packed_size(&h->plan),
                       hn_grouped_direct_scratch(&h->plan));
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_grouped_direct_seconds(&h->plan, m, h->packed.isa) + hn_epilogue_seconds(s, m, true);
}

HN_CONV_PACKED(blob_head, hn_grouped_direct_pack)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  hn_epilogue e;
  hn_epilogue_bind(r->step, h->packed.isa, false, hn_step_bias(r->step, r->in), r->in, &e);
  hn_grouped_direct_args a = {&h->plan,    hn_grouped_find(h->packed.isa),
                              r->in[0],    hn_shared_at(r, h->packed.weights_at),
                              r->out[0],   &e,
                              r->workspace};
  hn_grouped_direct_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_grouped_direct, "Conv", 4, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .shared = shared);
