/* ConvTranspose by phases: the output positions that share a remainder modulo the stride see the same taps,
 * so each phase is an ordinary stride-1 convolution over the input, with its own packed weights, that writes
 * every stride-th position.  Nothing is scattered or cleared. */
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

enum { MAX_PHASES = 64 };

typedef struct phase {
  hn_conv conv;
  int64_t runs_at, taps_at, weights_at; /* taps: the source tap of each run */
  int64_t at[3];                        /* the phase: first output position */
} phase;

typedef struct blob_head {
  hn_isa isa;
  int64_t n_phases, stride[3], bytes, scratch;
} blob_head;

/* Number of taps of one dimension that reach outputs of phase p. */
static int64_t live_taps(const hn_conv_attr *a, int dim, int64_t p) {
  int64_t n = 0;
  for (int64_t k = 0; k < a->kernel[dim]; k++)
    n += (p + a->pad[dim] - k * a->dilation[dim]) % a->stride[dim] == 0;
  return n;
}

/* The i-th live tap of a dimension. */
static void live_tap(const hn_conv_attr *a, int dim, int64_t p, int64_t i, int64_t *tap, int64_t *offset) {
  for (int64_t k = 0; k < a->kernel[dim]; k++) {
    int64_t d = p + a->pad[dim] - k * a->dilation[dim];
    if (d % a->stride[dim] || i-- > 0) continue;
    *tap = k, *offset = d / a->stride[dim];
    return;
  }
}

static bool describe(const hone_step *s, const hone_machine *m, hn_conv_attr *a, blob_head *h, phase *phases,
                     hone_reason *why) {
  if (!hn_step_is_f32(s, why) || !hn_conv_transpose_attr_of(s, a, why)) return false;
  if (!s->input[1].constant) return hn_refuse(why, "weights are not constant");
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(h->isa));
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  int64_t total = a->stride[0] * a->stride[1] * a->stride[2];
  if (total > MAX_PHASES)
    return hn_refuse(why, "strides make %lld phases, more than %d", (long long)total, MAX_PHASES);
  memcpy(h->stride, a->stride, sizeof h->stride);
  h->n_phases = total;
  size_t at = hn_round_up(sizeof *h + sizeof(phase) * (size_t)total, 64);
  for (int64_t i = 0; i < total; i++) {
    phase p = {.at = {i / (a->stride[1] * a->stride[2]), i / a->stride[2] % a->stride[1], i % a->stride[2]}};
    hn_conv *c = &p.conv;
    c->batch = a->x.batch, c->groups = a->groups, c->cin = a->cin, c->cout = a->cout;
    c->in_pitch = a->x.view.pixel, c->in_batch = a->x.view.batch, c->in_k = 1;
    c->out = (hn_view){a->y.view.batch, a->y.view.slice * a->stride[0], a->y.view.row * a->stride[1],
                       a->y.view.pixel * a->stride[2]};
    c->n_runs = 1;
    for (int d = 0; d < 3; d++) {
      c->in[d] = a->x.size[d], c->stride[d] = 1;
      c->grid[d] = p.at[d] < a->y.size[d] ? (a->y.size[d] - p.at[d] + a->stride[d] - 1) / a->stride[d] : 0;
      c->n_runs *= live_taps(a, d, p.at[d]);
      int64_t tap = 0, offset = 0;
      live_tap(a, d, p.at[d], 0, &tap, &offset);
      if (offset) c->shifted = 1;
    }
    c->k = c->n_runs * c->cin;
    hn_conv_plan(c, o, m->threads, m->l1, m->l2);
    p.runs_at = (int64_t)at;
    at = hn_round_up(at + (size_t)c->n_runs * sizeof(hn_tap_run), 64);
    p.taps_at = (int64_t)at;
    at = hn_round_up(at + (size_t)c->n_runs * sizeof(int32_t), 64);
    p.weights_at = (int64_t)at;
    at = hn_round_up(at + hn_gemm_packed_size(o, (size_t)c->cout, (size_t)c->k) * (size_t)c->groups * 4, 64);
    int64_t scratch = (int64_t)hn_conv_scratch(c, o);
    if (scratch > h->scratch) h->scratch = scratch;
    if (phases) phases[i] = p;
  }
  h->bytes = (int64_t)at;
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  blob_head h;
  return describe(s, m, &a, &h, NULL, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  blob_head h;
  phase phases[MAX_PHASES];
  if (!describe(s, m, &a, &h, phases, NULL)) return HN_REFUSED_SECONDS;
  double seconds = hn_epilogue_seconds(s, m, true);
  for (int64_t i = 0; i < h.n_phases; i++)
    seconds += hn_conv_seconds(&phases[i].conv, hn_gemm_find(h.isa), m);
  return seconds;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  blob_head h;
  hone_reason why;
  if (!describe(s, m, &a, &h, NULL, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "conv_transpose_phases: %s", why.text);
  n->blob_bytes = (size_t)h.bytes;
  n->packed = 1u << 1;
  n->workspace_bytes = (size_t)h.scratch * 4 * m->threads;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_attr a;
  blob_head h;
  hone_reason why;
  unsigned char *base = blob;
  phase *phases = (phase *)(void *)(base + sizeof h);
  if (!describe(s, m, &a, &h, phases, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "conv_transpose_phases: %s", why.text);
  memcpy(base, &h, sizeof h);
  const hn_gemm_ops *o = hn_gemm_find(h.isa);
  int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  for (int64_t i = 0; i < h.n_phases; i++) {
    const phase *p = &phases[i];
    hn_tap_run *run = (hn_tap_run *)(void *)(base + p->runs_at);
    int32_t *list = (int32_t *)(void *)(base + p->taps_at);
    float *w = (float *)(void *)(base + p->weights_at);
    int64_t n[3], tap[3] = {0}, offset[3] = {0};
    for (int d = 0; d < 3; d++) n[d] = live_taps(&a, d, p->at[d]);
    for (int64_t t = 0; t < p->conv.n_runs; t++) {
      int64_t index[3] = {t / (n[1] * n[2]), t / n[2] % n[1], t % n[2]};
      for (int d = 0; d < 3; d++) live_tap(&a, d, p->at[d], index[d], &tap[d], &offset[d]);
      run[t] = (hn_tap_run){(int32_t)offset[0], (int32_t)offset[1], (int32_t)offset[2], 1};
      list[t] = (int32_t)((tap[0] * a.kernel[1] + tap[1]) * a.kernel[2] + tap[2]);
    }
    for (int64_t g = 0; g < a.groups; g++)
      hn_gemm_pack_weights(o, (const float *)s->input[1].constant + g * a.cin * a.cout * taps, taps,
                           a.cout * taps, 1, a.cin, list, p->conv.n_runs, a.cout,
                           w + g * (int64_t)hn_gemm_packed_size(o, (size_t)a.cout, (size_t)p->conv.k));
  }
  return HONE_OK;
}

/* A tensor of the output's dimensions, seen from one phase. */
static hn_view phase_view(const hn_view *v, const int64_t stride[3]) {
  return (hn_view){v->batch, v->slice * stride[0], v->row * stride[1], v->pixel * stride[2]};
}

static int64_t phase_at(const hn_view *v, const int64_t at[3]) {
  return at[0] * v->slice + at[1] * v->row + at[2] * v->pixel;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const unsigned char *base = r->blob;
  const phase *phases = (const phase *)(const void *)(base + sizeof *h);
  const hone_step *s = r->step;
  hn_epilogue whole;
  hn_pixels y;
  hn_epilogue_bind(s, h->isa, false, hn_step_bias(s, r->in), r->in, &whole);
  hn_pixels_of(&s->output[0].desc, &y);
  for (int64_t i = 0; i < h->n_phases; i++) {
    const phase *p = &phases[i];
    hn_epilogue e = whole;
    if (e.residual)
      e.residual += phase_at(&e.residual_view, p->at),
          e.residual_view = phase_view(&e.residual_view, h->stride);
    for (uint32_t j = 0; j < e.n_post; j++)
      if (e.post[j].kind == HN_POST_ADD || e.post[j].kind == HN_POST_MUL)
        e.post[j].v += phase_at(&e.post[j].view, p->at),
            e.post[j].view = phase_view(&e.post[j].view, h->stride);
    hn_conv_args a = {.conv = &p->conv,
                      .ops = hn_gemm_find(h->isa),
                      .runs = (const hn_tap_run *)(const void *)(base + p->runs_at),
                      .x = r->in[0],
                      .w = (const float *)(const void *)(base + p->weights_at),
                      .y = (float *)r->out[0] + phase_at(&y.view, p->at),
                      .epilogue = &e,
                      .scratch = r->workspace,
                      .strip = hn_strip_find(h->isa)};
    hn_conv_exec(&a, r->parallel, r->pool);
  }
  return HONE_OK;
}

HN_TACTIC(cpu, conv_transpose_phases, "ConvTranspose", 3, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
