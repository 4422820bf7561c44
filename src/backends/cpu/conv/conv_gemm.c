/* Conv of one to three dimensions, any kernel, stride, dilation, padding and groups, as tiles of a matrix
 * product: weights packed at plan time, a 1x1 convolution reads the activation as it lies, others gather a
 * tile's input rows. */
#include <math.h>
#include <string.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/step/step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

/* Cycles of the cost model for one value. */
#define PACK_VALUE 1.2
#define PACK_TAP 2.4

typedef struct blob_head {
  hn_conv conv;
  hn_isa isa;
  int64_t runs_at, weights_at, bytes;
  int64_t dynamic, packed_floats,
      taps;       /* dynamic: weights known at run time only, packed into the workspace then */
  int64_t joined; /* rows of a tensor that are one of conv's */
} blob_head;

/* How many of the first n steps of `stride` from `at` on lie in 0 .. size. */
static int64_t steps_inside(int64_t at, int64_t stride, int64_t n, int64_t size) {
  const int64_t first = at < 0 ? (stride - 1 - at) / stride : 0;
  const int64_t end = at < size ? (size - 1 - at) / stride + 1 : 0;
  return end < n ? (end > first ? end - first : 0) : n > first ? n - first : 0;
}

/* As hn_conv.idle says it. */
static double idle_share(const hn_conv_attr *a) {
  double inside = 1;
  for (int d = 0; d < 2; d++) {
    int64_t n = 0;
    for (int64_t k = 0; k < a->kernel[d]; k++)
      n += steps_inside(k * a->dilation[d] - a->pad[d], a->stride[d], a->y.size[d], a->x.size[d]);
    const double all = (double)(a->kernel[d] * a->y.size[d]);
    inside *= all > 0 ? (double)n / all : 1;
  }
  return 1 - inside;
}

/* A kernel along depth alone may take any rows of the plane as one, where all tensors of the step lie so. */
static bool is_flat(const hn_pixels *p) { return p->view.row == p->size[2] * p->view.pixel; }

/* As many as fill tiles; of the plane none is left then where rows are short. How many became one. */
static int64_t join_rows(const hone_step *s, const hn_gemm_ops *o, hn_conv_attr *a) {
  hn_pixels *both[] = {&a->x, &a->y};
  for (int d = 1; d < 3; d++)
    if (a->kernel[d] != 1 || a->stride[d] != 1 || a->pad[d] || a->x.size[d] != a->y.size[d]) return 1;
  if (a->kernel[0] == 1 || !is_flat(&a->x) || !is_flat(&a->y)) return 1;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    hn_pixels other;
    if ((e->kind == HONE_EPI_ADD || e->kind == HONE_EPI_MUL) &&
        (!hn_pixels_of(&s->input[e->input].desc, &other) || !is_flat(&other)))
      return 1;
  }
  const int64_t rows = a->x.size[1], width = a->x.size[2];
  int64_t n = 1;
  while (n < rows && (rows % n || hn_fill_up(n * width, o->mr) * 20 > n * width * 21)) n++;
  for (int i = 0; i < 2; i++) {
    both[i]->size[1] = rows / n, both[i]->size[2] = n * width;
    both[i]->view.row *= n;
  }
  return n;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_conv_attr a;
  if (!hn_step_is_f32(s, why) || !hn_conv_attr_of(s, &a, why)) return false;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_epilogue_accepts(s, h->isa, false, why)) return false;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  if (!o) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(h->isa));
  h->joined = join_rows(s, o, &a);
  hn_conv *c = &h->conv;
  c->batch = a.x.batch, c->groups = a.groups, c->cin = a.cin, c->cout = a.cout;
  c->in_pitch = a.x.view.pixel, c->in_batch = a.x.view.batch, c->in_k = 1;
  c->out = a.y.view;
  for (int i = 0; i < 3; i++) c->in[i] = a.x.size[i], c->grid[i] = a.y.size[i], c->stride[i] = a.stride[i];
  /* Neighbouring taps are one run of memory when pixels follow each other without a gap. */
  bool merge = c->in_pitch == c->cin && a.dilation[2] == 1;
  int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  c->n_runs = merge ? a.kernel[0] * a.kernel[1] : taps;
  c->k = taps * c->cin;
  c->shifted = a.pad[0] || a.pad[1] || a.pad[2];
  hn_conv_set_lines(c, a.kernel, a.dilation, !merge);
  for (int i = 0; i < 2; i++)
    c->pad[i] = a.pad[i + 1], c->window[i] = (a.kernel[i + 1] - 1) * a.dilation[i + 1] + 1;
  if (a.kernel[0] > 1 || a.pad[0]) c->window[0] = 0; /* a picture with a border has no depth */
  c->idle = idle_share(&a);
  hn_conv_plan(c, o, m->threads, m->l1, m->l2);
  h->runs_at = (int64_t)hn_round_up(sizeof *h, 64);
  h->weights_at = (int64_t)hn_round_up((size_t)h->runs_at + (size_t)c->n_runs * sizeof(hn_tap_run), 64);
  h->taps = taps;
  h->dynamic = !s->input[1].constant;
  h->packed_floats =
      (int64_t)hn_round_up(hn_gemm_packed_size(o, (size_t)c->cout, (size_t)c->k) * (size_t)c->groups, 16);
  h->bytes = h->weights_at + (h->dynamic ? 0 : h->packed_floats * 4);
  return true;
}

/* Weights that are known in the run only are packed in every run: scalar loads and stores from as many
 * filters as a panel has columns, twice as slow where neighbours in memory are taps and not channels; and
 * they come from memory once more. */
static double packing_seconds(const blob_head *h, const hn_gemm_ops *o, const hone_machine *m) {
  const double values = (double)(h->conv.groups * h->conv.cout * h->conv.k);
  const double threads = m->threads ? m->threads : 1;
  const double cycles = values * (h->taps > 1 ? PACK_TAP : PACK_VALUE) / threads +
                        hn_weights_cycles(values * 4 / threads, values * 4, o, m);
  return cycles / hn_core_hertz(o, m);
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  double seconds = hn_conv_seconds(&h->conv, o, m) + hn_epilogue_seconds(s, m, true);
  if (h->dynamic) seconds += packing_seconds(h, o, m);
  /* Groups of one channel: every product fills one lane of a vector and is begun for itself, which the model
   * of large products does not know.  The kernels for depthwise convolution count a fixed 3 us. */
  return h->conv.groups > 1 && h->conv.cin == 1 && h->conv.cout == 1 ? seconds * 2 + 3e-6 : seconds;
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->packed = n->bytewise = h->dynamic ? 0 : 1u << 1;
  n->workspace_bytes = hn_conv_scratch(&h->conv, hn_gemm_find(h->isa)) * 4 * m->threads +
                       (h->dynamic ? (size_t)h->packed_floats * 4 : 0);
}

static size_t shared(const hone_step *s, const hone_machine *m, uint64_t *key) {
  (void)key;
  blob_head h;
  return describe(s, m, &h, NULL) && !h.dynamic ? (size_t)h.weights_at : 0;
}

typedef struct packing {
  const blob_head *h;
  const hn_gemm_ops *o;
  const float *from;
  float *to;
} packing;

static int64_t panels(const packing *p) { return p->h->conv.groups * p->h->conv.n_panels; }

/* One panel of columns of one group: weights are [groups * cout][cin][taps]. */
static void pack_panel(void *arg, int64_t task, uint32_t thread) {
  (void)thread;
  const packing *p = arg;
  const hn_conv *c = &p->h->conv;
  int64_t g = task / c->n_panels, n0 = task % c->n_panels * p->o->nr, taps = p->h->taps,
          filter = c->cin * taps;
  int64_t n = c->cout - n0 < p->o->nr ? c->cout - n0 : p->o->nr;
  float *to = p->to + g * (int64_t)hn_gemm_packed_size(p->o, (size_t)c->cout, (size_t)c->k) + n0 * c->k;
  hn_gemm_pack_weights(p->o, p->from + (g * c->cout + n0) * filter, filter, taps, 1, c->cin, NULL, taps, n,
                       to);
}

static bool all_finite(const void *w, int64_t n) { /* at any alignment */
  for (int64_t i = 0; i < n; i++) {
    float v;
    memcpy(&v, (const char *)w + (size_t)i * sizeof v, sizeof v);
    if (!isfinite(v)) return false;
  }
  return true;
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  hn_conv_attr a;
  hone_reason why = {""};
  if (!hn_conv_attr_of(s, &a, &why)) return hn_not_described(s, &why, error);
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  unsigned char *base = blob;
  memcpy(base, h, sizeof *h);
  hn_tap_run *run = (hn_tap_run *)(void *)(base + h->runs_at);
  bool merge = h->conv.n_runs < a.kernel[0] * a.kernel[1] * a.kernel[2] || a.kernel[2] == 1;
  for (int64_t z = 0; z < a.kernel[0]; z++)
    for (int64_t y = 0; y < a.kernel[1]; y++)
      for (int64_t x = 0; x < (merge ? 1 : a.kernel[2]); x++)
        *run++ =
            (hn_tap_run){(int32_t)(z * a.dilation[0] - a.pad[0]), (int32_t)(y * a.dilation[1] - a.pad[1]),
                         (int32_t)(x * a.dilation[2] - a.pad[2]), merge ? (uint32_t)a.kernel[2] : 1};
  packing p = {h, o, s->input[1].constant, (float *)(void *)(base + h->weights_at)};
  for (int64_t i = 0; i < panels(&p) && !h->dynamic && !s->own_only; i++) pack_panel(&p, i, 0);
  /* Padding times a weight that is not finite is NaN, wherever tiles begin. */
  if (h->conv.skips &&
      (h->dynamic || !all_finite(s->input[1].constant, h->conv.groups * h->conv.cout * h->conv.k)))
    ((blob_head *)(void *)base)->conv.skips = 0;
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const blob_head *h = r->blob;
  const unsigned char *base = r->blob;
  const hone_step *s = r->step;
  const hn_gemm_ops *o = hn_gemm_find(h->isa);
  const float *w = hn_shared_at(r, h->weights_at);
  float *scratch = r->workspace;
  if (h->dynamic) {
    packing p = {h, o, r->in[1], scratch};
    r->parallel(r->pool, panels(&p), pack_panel, &p);
    w = scratch;
    scratch += h->packed_floats;
  }
  hn_epilogue e;
  hn_epilogue_bind(s, h->isa, false, hn_step_bias(s, r->in), r->in, &e);
  e.residual_view.row *= h->joined;
  for (uint32_t i = 0; i < e.n_post; i++) e.post[i].view.row *= h->joined;
  hn_conv_args a = {.conv = &h->conv,
                    .ops = o,
                    .strip = hn_strip_find(h->isa),
                    .runs = (const hn_tap_run *)(const void *)(base + h->runs_at),
                    .x = r->in[0],
                    .w = w,
                    .y = r->out[0],
                    .epilogue = &e,
                    .scratch = scratch};
  hn_conv_exec(&a, r->parallel, r->pool);
  return HONE_OK;
}

HN_TACTIC(cpu, conv_gemm, "Conv", 7, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run, .shared = shared);
