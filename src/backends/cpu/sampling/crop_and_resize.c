/* CropAndResize of f32 images. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/sampling/points.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "model/ops/microsoft/images/crop.h"

enum { X, ROIS, BATCH };

typedef struct blob_head {
  hn_points points;
  int64_t height, width, rows, columns;
  float outside;
  bool nearest, wide; /* wide: numbers of images are i64 */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc, *rois = &s->input[ROIS].desc, *of = &s->input[BATCH].desc,
                         *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(rois) || !hn_step_plain(of) || !hn_step_plain_f32(y))
    return hn_refuse(why, "not row-major f32 of a known shape");
  if (hone_desc_count(x) < 1 || hone_desc_count(y) < 1) return hn_refuse(why, "an empty operand");
  h->height = x->dim[2], h->width = x->dim[3], h->rows = y->dim[2], h->columns = y->dim[3];
  h->outside = hone_node_float(s->node, "extrapolation_value", 0);
  h->nearest = strcmp(hone_node_string(s->node, "mode", "bilinear"), "nearest") == 0;
  h->wide = of->dtype == HONE_DTYPE_I64;
  h->points = (hn_points){.isa = hn_isa_of(m->isa),
                          .images = x->dim[0],
                          .channels = x->dim[1],
                          .in = h->height * h->width,
                          .groups = y->dim[0],
                          .out = h->rows * h->columns,
                          .taps = h->nearest ? 1 : 4};
  return hn_points_plan(&h->points, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  hone_reason why = {""};
  return describe(s, m, &h, &why) ? hn_points_seconds(&h.points, m) : 0;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = hn_points_workspace(&h.points, m->threads);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

static int64_t image_of(const hone_step_run *r, int64_t box) {
  const blob_head *h = r->blob;
  return h->wide ? ((const int64_t *)r->in[BATCH])[box] : ((const int32_t *)r->in[BATCH])[box];
}

static void fill(const hone_step_run *r, int64_t box, int64_t first, int64_t n, const hn_point_tables *t) {
  const blob_head *h = r->blob;
  const float *b = (const float *)r->in[ROIS] + 4 * box;
  const int64_t taps = h->points.taps, tile = t->tile;
  int64_t i = first / h->columns, k = first % h->columns;
  float y = hn_crop_place(b[0], b[2], i, h->rows, h->height);
  for (int64_t p = 0; p < n; p++, k++) {
    if (k == h->columns) k = 0, y = hn_crop_place(b[0], b[2], ++i, h->rows, h->height);
    const float x = hn_crop_place(b[1], b[3], k, h->columns, h->width);
    int32_t *a = t->at + p;
    float *w = t->weight + p;
    if (!(y >= 0 && y <= (float)(h->height - 1) && x >= 0 && x <= (float)(h->width - 1))) {
      t->base[p] = HN_FAULT("crop_outside") ? 0 : h->outside;
      for (int64_t k = 0; k < taps; k++) a[k * tile] = -1, w[k * tile] = 0;
      continue;
    }
    t->base[p] = 0;
    if (h->nearest) {
      *a = (int32_t)((int64_t)roundf(y) * h->width + (int64_t)roundf(x)), *w = 1;
      continue;
    }
    const int32_t top = (int32_t)y, left = (int32_t)x, line = (int32_t)h->width, corner = top * line + left;
    const float dy = y - (float)top, dx = x - (float)left;
    /* On a line of pixels the next one counts nothing, and need not be there. */
    a[0] = corner, w[0] = (1 - dy) * (1 - dx);
    a[tile] = dx > 0 ? corner + 1 : -1, w[tile] = (1 - dy) * dx;
    a[2 * tile] = dy > 0 ? corner + line : -1, w[2 * tile] = dy * (1 - dx);
    a[3 * tile] = dx > 0 && dy > 0 ? corner + line + 1 : -1, w[3 * tile] = dy * dx;
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  for (int64_t b = 0; b < h->points.groups; b++) {
    const int64_t image = image_of(r, b);
    if (image < 0 || image >= h->points.images)
      return hn_fail(error, HONE_ERROR_INPUT, "node '%s' (CropAndResize): box %lld is of image %lld of %lld",
                     hone_node_name(r->step->node), (long long)b, (long long)image,
                     (long long)h->points.images);
  }
  hn_points_run(r, &h->points, r->in[X], r->out[0], fill, image_of);
  return HONE_OK;
}

HN_TACTIC(cpu, crop_and_resize, "com.microsoft.CropAndResize", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
