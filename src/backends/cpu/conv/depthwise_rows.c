/* Depthwise Conv (one filter a channel) of one to three dimensions, channels-last. */
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/cpu/conv/depthwise_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct blob_head {
  hn_depthwise d;
  hn_isa isa;
  int64_t weights_at, bytes;
  int64_t dynamic; /* weights known at run time only, packed into the workspace then */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why)) return false;
  if (a.cin != 1 || a.cout != 1)
    return hn_refuse(why, "not depthwise: %lld inputs and %lld outputs a group", (long long)a.cin,
                     (long long)a.cout);
  if (!hn_window_fits(&a, why)) return false;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_depthwise_find(h->isa)) return hn_refuse(why, "no depthwise kernel for %s", hn_isa_name(h->isa));
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  hn_depthwise *d = &h->d;
  d->batch = a.x.batch, d->channels = a.groups;
  d->window = hn_window_of(&a);
  d->in_batch = a.x.view.batch, d->in_pixel = a.x.view.pixel;
  d->y = a.y.view;
  d->w_tap = (int64_t)hn_round_up((size_t)d->channels, 16);
  hn_depthwise_plan(d, hn_depthwise_find(h->isa)->vw, m->threads, m->l1, m->l2);
  h->weights_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->dynamic = !s->input[1].constant;
  h->bytes = h->weights_at + (h->dynamic ? 0 : (int64_t)hn_depthwise_packed_size(d) * 4);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, s->cost.flops, s->cost.bytes, 0.3) + hn_epilogue_seconds(s, m, true);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why;
  if (!describe(s, m, &h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise_rows: %s", why.text);
  n->blob_bytes = (size_t)h.bytes;
  n->packed = h.dynamic ? 0 : 1u << 1;
  n->workspace_bytes = h.dynamic ? hn_depthwise_packed_size(&h.d) * 4 : 0;
  return HONE_OK;
}

static size_t shared(const hone_step *s, const hone_machine *m, uint64_t *key) {
  (void)key;
  blob_head h;
  return describe(s, m, &h, NULL) && !h.dynamic ? (size_t)h.weights_at : 0;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  blob_head h;
  hone_reason why;
  if (!describe(s, m, &h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise_rows: %s", why.text);
  unsigned char *base = blob;
  memcpy(base, &h, sizeof h);
  if (!h.dynamic && !s->own_only)
    hn_depthwise_pack(&h.d, s->input[1].constant, (float *)(void *)(base + h.weights_at));
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, hn_step_bias(s, r->in), r->in, &e);
  const float *w = hn_shared_at(r, h->weights_at);
  if (h->dynamic) {
    hn_depthwise_pack(&h->d, r->in[1], r->workspace);
    w = r->workspace;
  }
  hn_depthwise_args a = {&h->d, hn_depthwise_find(h->isa), r->in[0], w, r->out[0], &e};
  hn_depthwise_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, depthwise_rows, "Conv", 3, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
