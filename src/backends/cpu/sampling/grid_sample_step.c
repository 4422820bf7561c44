#include "backends/cpu/sampling/grid_sample_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/sampling/points.h"
#include "base/error.h"
#include "base/fault.h"
#include "model/ops/sampling/grid.h"

enum { X, GRID, AXES = 4 };

typedef struct blob_head {
  hn_points points;
  hn_grid grid;
  int64_t axes, size[AXES], taps; /* taps of an axis */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc, *g = &s->input[GRID].desc, *y = &s->output[0].desc;
  hone_error error = {0};
  memset(h, 0, sizeof *h);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(g) || !hn_step_plain_f32(y))
    return hn_refuse(why, "not row-major f32 of a known shape");
  if (hn_grid_read(s->node, &h->grid, &error)) return hn_refuse(why, "%.140s", error.what);
  h->axes = x->rank - 2;
  if (h->axes < 1 || h->axes > AXES) return hn_refuse(why, "%d spatial axes", (int)h->axes);
  if (hone_desc_count(x) < 1 || hone_desc_count(y) < 1) return hn_refuse(why, "an empty operand");
  h->taps = h->grid.mode == HN_GRID_NEAREST ? 1 : h->grid.mode == HN_GRID_LINEAR ? 2 : HN_GRID_MOST;
  hn_points *p = &h->points;
  *p = (hn_points){.isa = hn_isa_of(m->isa),
                   .images = x->dim[0],
                   .groups = x->dim[0],
                   .channels = x->dim[1],
                   .in = 1,
                   .out = 1,
                   .taps = 1};
  for (int64_t d = 0; d < h->axes; d++) {
    h->size[d] = x->dim[2 + d];
    p->in *= h->size[d], p->out *= y->dim[2 + d], p->taps *= h->taps;
  }
  return hn_points_plan(p, why);
}

bool hn_grid_step_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

double hn_grid_step_cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  hone_reason why = {""};
  return describe(s, m, &h, &why) ? hn_points_seconds(&h.points, m) : 0;
}

hone_status hn_grid_step_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,
                              hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = hn_points_workspace(&h.points, m->threads);
  return HONE_OK;
}

hone_status hn_grid_step_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
}

/* Keys' kernel at the four taps around a point that lies f behind the second. */
static inline void cubic(float f, float *w) {
  const float a = -0.75f, g = 1 - f, e = 1 + f, h = 2 - f;
  w[0] = ((a * e - 5 * a) * e + 8 * a) * e - 4 * a;
  w[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
  w[2] = ((a + 2) * g - (a + 3)) * g * g + 1;
  w[3] = ((a * h - 5 * a) * h + 8 * a) * h - 4 * a;
}

/* The taps of one axis. Inside of the image they are the same whatever lies beyond its border; the definition
 * says what they are near it and outside. */
static inline void axis_taps(const hn_grid *o, float g, int64_t size, int32_t *at, float *w) {
  const float x = hn_grid_place(o, g, (float)size);
  const int32_t before = o->mode == HN_GRID_CUBIC, after = o->mode == HN_GRID_CUBIC ? 3 : 1;
  if (x >= (float)before && x < (float)(size - after) && o->mode != HN_GRID_NEAREST) {
    const int32_t base = (int32_t)x;
    const float f = x - (float)base;
    if (o->mode == HN_GRID_LINEAR) {
      at[0] = base, at[1] = base + 1;
      w[0] = 1 - f, w[1] = HN_FAULT("grid_sample_weight") ? 1 - f : f;
    } else {
      for (int32_t k = 0; k < HN_GRID_MOST; k++) at[k] = base + k - 1;
      cubic(f, w);
    }
    return;
  }
  /* To the nearest even, below 2^22. */
  if (o->mode == HN_GRID_NEAREST && x >= 0 && x <= (float)(size - 1) && x < 0x1p22f) {
    at[0] = (int32_t)((x + 0x1.8p23f) - 0x1.8p23f), w[0] = 1;
    return;
  }
  hn_grid_taps t;
  hn_grid_find(o, g, size, &t);
  for (int32_t k = 0; k < t.n; k++) at[k] = (int32_t)t.index[k], w[k] = (float)t.weight[k];
}

/* Tables of one point: all choices of one tap an axis, the last axis' changing fastest. */
static void fill_point(const blob_head *h, const float *g, int64_t tile, int32_t *at, float *weight) {
  int32_t place[AXES][HN_GRID_MOST], k[AXES] = {0};
  float w[AXES][HN_GRID_MOST];
  /* The grid names the last axis first. */
  for (int64_t d = 0; d < h->axes; d++) axis_taps(&h->grid, g[h->axes - 1 - d], h->size[d], place[d], w[d]);
  for (int64_t t = 0; t < h->points.taps; t++) {
    int64_t i = 0;
    float by = 1;
    bool inside = true;
    for (int64_t d = 0; d < h->axes; d++) {
      const int32_t one = place[d][k[d]];
      inside = inside && one >= 0;
      i = i * h->size[d] + one;
      by *= w[d][k[d]];
    }
    at[t * tile] = inside ? (int32_t)i : -1;
    weight[t * tile] = by;
    for (int64_t d = h->axes - 1; d >= 0 && ++k[d] == h->taps; d--) k[d] = 0;
  }
}

static void fill(const hone_step_run *r, int64_t group, int64_t first, int64_t n, const hn_point_tables *t) {
  const blob_head *h = r->blob;
  const float *g = (const float *)r->in[GRID] + (group * h->points.out + first) * h->axes;
  memset(t->base, 0, (size_t)n * sizeof *t->base);
  const bool corners = h->axes == 2 && h->grid.mode == HN_GRID_LINEAR;
  if (corners && !t->ops->corners(t->at, t->weight, (size_t)t->tile, g, (size_t)n, (int32_t)h->size[0],
                                  (int32_t)h->size[1], h->grid.align))
    return;
  for (int64_t p = 0; p < n; p++)
    if (!corners || t->at[p] < 0) fill_point(h, g + p * h->axes, t->tile, t->at + p, t->weight + p);
}

hone_status hn_grid_step_run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  hn_points_run(r, &h->points, r->in[X], r->out[0], fill, NULL);
  return HONE_OK;
}
