/* Conv of several groups of few channels, of one or two dimensions, channels-last, weights known. */
#include <string.h>

#include "backends/cpu/conv/grouped_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct blob_head {
  hn_grouped g;
  hn_isa isa;
  int64_t weights_at, bytes;
} blob_head;

static bool sizes(const hn_conv_attr *a, hn_grouped *g, hone_reason *why) {
  if (a->groups < 2 || (a->cin == 1 && a->cout == 1)) return hn_refuse(why, "one group, or depthwise");
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->kernel[1] * a->cin > HN_GROUPED_ROWS)
    return hn_refuse(why, "more than %d rows of a group's kernels", HN_GROUPED_ROWS);
  if ((a->kernel[1] - 1) * a->dilation[1] >= HN_GROUPED_RING)
    return hn_refuse(why, "kernels of more than %d input rows", HN_GROUPED_RING);
  if (a->groups * a->cin > INT32_MAX) return hn_refuse(why, "too many channels");
  g->batch = a->x.batch, g->groups = a->groups, g->cin = a->cin, g->cout = a->cout;
  for (int i = 0; i < 2; i++) {
    g->in[i] = a->x.size[i + 1], g->out[i] = a->y.size[i + 1], g->kernel[i] = a->kernel[i + 1];
    g->stride[i] = a->stride[i + 1], g->dilation[i] = a->dilation[i + 1], g->pad[i] = a->pad[i + 1];
  }
  g->in_batch = a->x.view.batch, g->in_row = a->x.view.row, g->in_pixel = a->x.view.pixel;
  g->y = a->y.view;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why) || !sizes(&a, &h->g, why)) return false;
  if (!s->input[1].constant) return hn_refuse(why, "weights are known in the run only");
  if (!hn_depthwise_find(h->isa) || !hn_pick_find(h->isa) || !hn_gemm_find(h->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  hn_grouped_plan(&h->g, m->threads, m->l1);
  h->weights_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->bytes = h->weights_at + (int64_t)hn_grouped_packed_size(&h->g) * 4;
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_grouped_seconds(&h->g, hn_depthwise_find(h->isa), m, h->isa) + hn_epilogue_seconds(s, m, true);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->packed = 1u << 1;
  n->workspace_bytes = hn_grouped_scratch(&h->g) * m->threads;
}

static size_t shared(const hone_step *s, const hone_machine *m, uint64_t *key) {
  (void)key;
  blob_head h;
  return describe(s, m, &h, NULL) ? (size_t)h.weights_at : 0;
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  unsigned char *base = blob;
  memcpy(base, h, sizeof *h);
  if (!s->own_only) hn_grouped_pack(&h->g, s->input[1].constant, (float *)(void *)(base + h->weights_at));
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, hn_step_has(s, 2) && s->n_anchor_inputs > 2 ? r->in[2] : NULL, r->in,
                   &e);
  hn_grouped_args a = {&h->g,
                       hn_depthwise_find(h->isa),
                       hn_pick_find(h->isa),
                       r->in[0],
                       hn_shared_at(r, h->weights_at),
                       r->out[0],
                       &e,
                       r->workspace};
  hn_grouped_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_grouped, "Conv", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
