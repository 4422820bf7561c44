/* Conv of several groups, of one or two dimensions, channels-last, weights known, by broadcasts of the input.
 */
#include <string.h>

#include "backends/cpu/conv/grouped_direct.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct blob_head {
  hn_grouped_direct d;
  hn_isa isa;
  int64_t weights_at, bytes;
} blob_head;

static bool sizes(const hn_conv_attr *a, hn_grouped_direct *d, hone_reason *why) {
  if (a->groups < 2 || (a->cin == 1 && a->cout == 1)) return hn_refuse(why, "one group, or depthwise");
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->kernel[1] > HN_DIRECT_ROWS || (a->kernel[1] - 1) * a->dilation[1] >= HN_DIRECT_RING)
    return hn_refuse(why, "kernels of more than %d rows or %d input rows", HN_DIRECT_ROWS, HN_DIRECT_RING);
  if (a->groups * a->cin > INT32_MAX) return hn_refuse(why, "too many channels");
  d->batch = a->x.batch, d->groups = a->groups, d->cin = a->cin, d->cout = a->cout;
  for (int i = 0; i < 2; i++) {
    d->in[i] = a->x.size[i + 1], d->out[i] = a->y.size[i + 1], d->kernel[i] = a->kernel[i + 1];
    d->stride[i] = a->stride[i + 1], d->dilation[i] = a->dilation[i + 1], d->pad[i] = a->pad[i + 1];
  }
  d->in_batch = a->x.view.batch, d->in_row = a->x.view.row, d->in_pixel = a->x.view.pixel;
  d->y = a->y.view;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why) || !sizes(&a, &h->d, why)) return false;
  if (!s->input[1].constant) return hn_refuse(why, "weights are known in the run only");
  const hn_grouped_ops *ops = hn_grouped_find(h->isa);
  if (!ops || !hn_gemm_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  hn_grouped_direct_plan(&h->d, ops->vw, m->threads, m->l1, m->l2);
  h->weights_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->bytes = h->weights_at + (int64_t)hn_grouped_direct_packed_size(&h->d) * 4;
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_grouped_direct_seconds(&h->d, m, h->isa) + hn_epilogue_seconds(s, m, true);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->packed = 1u << 1;
  n->workspace_bytes = hn_grouped_direct_scratch(&h->d) * m->threads;
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
  if (!s->own_only)
    hn_grouped_direct_pack(&h->d, s->input[1].constant, (float *)(void *)(base + h->weights_at));
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
  hn_grouped_direct_args a = {
      &h->d, hn_grouped_find(h->isa), r->in[0], hn_shared_at(r, h->weights_at), r->out[0], &e, r->workspace};
  hn_grouped_direct_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_grouped_direct, "Conv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .shared = shared);
