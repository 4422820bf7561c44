/* Conv from few channels to few, of one to three dimensions, one group, channels-last, weights known. */
#include <string.h>

#include "backends/cpu/conv/planes_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/tactic.h"
#include "base/mem.h"

enum { MOST_CHANNELS = 8, MOST_OUTPUTS = 128 }; /* more are a matrix product's matter */

typedef struct blob_head {
  hn_planes p;
  hn_isa isa;
  int64_t weights_at, bytes;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why) || !hn_window_fits(&a, why)) return false;
  if (a.groups != 1) return hn_refuse(why, "several groups");
  if (a.cin > MOST_CHANNELS || a.cout > MOST_OUTPUTS)
    return hn_refuse(why, "more than %d input or %d output channels", MOST_CHANNELS, MOST_OUTPUTS);
  if (a.kernel[0] * a.kernel[1] * a.cin > HN_PLANES_ROWS || a.kernel[2] > HN_PLANES_TAPS)
    return hn_refuse(why, "more than %d rows of a kernel, or %d columns", HN_PLANES_ROWS, HN_PLANES_TAPS);
  if (a.stride[2] > HN_PLANES_STRIDE) return hn_refuse(why, "a stride of more than %d", HN_PLANES_STRIDE);
  if (!s->input[1].constant) return hn_refuse(why, "weights are known in the run only");
  if (!hn_planes_find(h->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->isa));
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  h->p = (hn_planes){.batch = a.x.batch,
                     .channels = a.cin,
                     .outputs = a.cout,
                     .window = hn_window_of(&a),
                     .in_batch = a.x.view.batch,
                     .in_pixel = a.x.view.pixel,
                     .y = a.y.view};
  hn_planes_plan(&h->p, hn_planes_find(h->isa)->vw, m->threads, m->l2);
  h->weights_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->bytes = h->weights_at + (int64_t)hn_planes_packed_size(&h->p) * 4;
  return true;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  return hn_planes_seconds(&h->p, hn_planes_find(h->isa), m, h->isa) + hn_epilogue_seconds(s, m, true);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->packed = 1u << 1;
  n->workspace_bytes = hn_planes_scratch(&h->p) * sizeof(float) * m->threads;
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
  if (!s->own_only) hn_planes_pack(&h->p, s->input[1].constant, (float *)(void *)(base + h->weights_at));
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const hone_step *s = r->step;
  const float *bias = hn_step_has(s, 2) && s->n_anchor_inputs > 2 ? r->in[2] : NULL;
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, bias, r->in, &e);
  if (e.residual) hn_epilogue_bind_rows(s, h->isa, false, bias, r->in, &e);
  const hn_planes_args a = {
      &h->p, hn_planes_find(h->isa), r->in[0], hn_shared_at(r, h->weights_at), r->out[0], &e, r->workspace};
  hn_planes_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_planes, "Conv", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
