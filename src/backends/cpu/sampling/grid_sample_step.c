#include "backends/cpu/sampling/grid_sample_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/sampling/points.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "model/ops/sampling/grid.h"

enum { X, GRID, AXES = HN_TAPS_AXES };

typedef struct blob_head {
  hn_points points;
  hn_grid grid;
  int64_t axes, size[AXES], taps; /* taps of an axis */
  bool near;                      /* no axis is too long for the kernel of tables */
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
  h->near = true;
  for (int64_t d = 0; d < h->axes; d++) {
    h->size[d] = x->dim[2 + d];
    h->near = h->near && h->size[d] <= HN_TAPS_SIZE;
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
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = hn_points_workspace(&h.points, m->threads);
  return HONE_OK;
}

hone_status hn_grid_step_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

/* Tables of one point by the definition: where f32 is too narrow. */
static void fill_point(const blob_head *h, const float *g, int64_t tile, int32_t *at, float *weight) {
  hn_grid_taps axis[AXES];
  int64_t k[AXES] = {0};
  /* The grid names the last axis first. */
  for (int64_t d = 0; d < h->axes; d++) hn_grid_find(&h->grid, g[h->axes - 1 - d], h->size[d], &axis[d]);
  for (int64_t t = 0; t < h->points.taps; t++) {
    int64_t i = 0;
    double by = 1;
    bool inside = true;
    for (int64_t d = 0; d < h->axes; d++) {
      const int64_t one = axis[d].index[k[d]];
      inside = inside && one >= 0;
      i = i * h->size[d] + one;
      by *= axis[d].weight[k[d]];
    }
    at[t * tile] = inside ? (int32_t)i : -1;
    weight[t * tile] = (float)by;
    for (int64_t d = h->axes - 1; d >= 0 && ++k[d] == h->taps; d--) k[d] = 0;
  }
}

static void fill(const hone_step_run *r, int64_t group, int64_t first, int64_t n, const hn_point_tables *t) {
  const blob_head *h = r->blob;
  const float *g = (const float *)r->in[GRID] + (group * h->points.out + first) * h->axes;
  memset(t->base, 0, (size_t)n * sizeof *t->base);
  if (!h->near) {
    for (int64_t p = 0; p < n; p++) fill_point(h, g + p * h->axes, t->tile, t->at + p, t->weight + p);
    return;
  }
  size_t far =
      t->ops->places(t->at, t->weight, (size_t)t->tile, g, (size_t)n, &h->grid, h->size, (size_t)h->axes);
  for (int64_t p = 0; p < n && far; p++)
    if (t->at[p] == HN_TAPS_FAR) fill_point(h, g + p * h->axes, t->tile, t->at + p, t->weight + p), far--;
}

hone_status hn_grid_step_run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  hn_points_run(r, &h->points, r->in[X], r->out[0], fill, NULL);
  return HONE_OK;
}
