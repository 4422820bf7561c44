/* A detector's outputs as boxes of a picture: rows of numbers, lists, and grids that are to be suppressed. */
#include "runtime/post/decode.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char *hone_box_form_name(hone_box_form form) {
  static const char *const names[] = {
      [HONE_BOXES_AUTO] = "auto",    [HONE_BOXES_ROWS] = "xyxy-score-class", [HONE_BOXES_LISTS] = "lists",
      [HONE_BOXES_NMS] = "nms",      [HONE_BOXES_SCORES] = "boxes-scores",   [HONE_BOXES_YOLOV3] = "yolov3",
      [HONE_BOXES_YOLOV8] = "yolov8"};
  return (unsigned)form < HONE_BOX_FORMS ? names[form] : "";
}

/* ---- which output is what */

static int64_t last(const hone_tensor *t) { return t->desc.rank ? t->desc.dim[t->desc.rank - 1] : 1; }

static bool is_float(const hone_tensor *t) { return hone_dtype_is_float(t->desc.dtype); }

static bool named(const char *name, const char *word) { return name && strcasestr(name, word) != NULL; }

/* [N,M,width], or without N where a run has one sample. */
static bool is_table(const hone_tensor *t, int64_t rows, int64_t width) {
  const int32_t r = t->desc.rank;
  return is_float(t) && last(t) > 0 && (width < 0 || last(t) == width) &&
         ((r == 3 && t->desc.dim[0] == rows) || (r == 2 && rows == 1));
}

static int32_t table(const hone_tensor *const *out, uint32_t n, int64_t rows, int64_t width, int32_t but) {
  for (uint32_t i = 0; i < n; i++)
    if ((int32_t)i != but && is_table(out[i], rows, width)) return (int32_t)i;
  return -1;
}

/* NonMaxSuppression's: whole numbers [K,3]. */
static int32_t picks(const hone_tensor *const *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (!is_float(out[i]) && out[i]->desc.rank >= 2 && last(out[i]) == 3) return (int32_t)i;
  return -1;
}

/* A number a box: the scores, the classes, or how many boxes there are. */
static void find_lists(hn_decoder *d, const hone_tensor *const *out, const char *const *names, uint32_t n) {
  d->boxes = table(out, n, d->rows, 4, -1);
  const int64_t count = d->boxes >= 0 ? hone_desc_count(&out[d->boxes]->desc) / 4 : -1;
  for (uint32_t i = 0; i < n; i++) {
    const bool each = (int32_t)i != d->boxes && hone_desc_count(&out[i]->desc) == count;
    if (named(names[i], "num") && hone_desc_count(&out[i]->desc) == d->rows)
      d->count = (int32_t)i;
    else if (each && (named(names[i], "class") || named(names[i], "label") || !is_float(out[i])))
      d->classes = (int32_t)i;
    else if (each && is_float(out[i]) && d->scores < 0)
      d->scores = (int32_t)i;
  }
}

/* Whether the outputs are of the form; fills in which is which. */
static bool fits(hn_decoder *d, hone_box_form form, const hone_tensor *const *out, const char *const *names,
                 uint32_t n) {
  d->boxes = d->scores = d->classes = d->picked = d->count = -1;
  d->o.form = form;
  switch (form) {
  case HONE_BOXES_ROWS:
    d->boxes = table(out, n, d->rows, 6, -1);
    for (uint32_t i = 0; i < n && d->boxes < 0; i++)
      if (is_float(out[i]) && out[i]->desc.rank == 2 && last(out[i]) == 7) d->boxes = (int32_t)i;
    return d->boxes >= 0;
  case HONE_BOXES_LISTS:
    find_lists(d, out, names, n);
    return d->boxes >= 0 && d->scores >= 0 && d->classes >= 0;
  case HONE_BOXES_NMS:
    d->picked = picks(out, n);
    d->boxes = table(out, n, d->rows, 4, -1);
    d->scores = table(out, n, d->rows, -1, d->boxes);
    return d->picked >= 0 && d->boxes >= 0 && d->scores >= 0 &&
           last(out[d->scores]) == hone_desc_count(&out[d->boxes]->desc) / 4 / d->rows;
  case HONE_BOXES_SCORES:
    d->boxes = table(out, n, d->rows, 4, -1);
    d->scores = table(out, n, d->rows, -1, d->boxes);
    return d->boxes >= 0 && d->scores >= 0 &&
           hone_desc_count(&out[d->scores]->desc) / last(out[d->scores]) ==
               hone_desc_count(&out[d->boxes]->desc) / 4;
  case HONE_BOXES_YOLOV3:
  case HONE_BOXES_YOLOV8:
    d->boxes = table(out, n, d->rows, -1, -1);
    return d->boxes >= 0 && out[d->boxes]->desc.rank == 3 &&
           (form == HONE_BOXES_YOLOV3 ? last(out[d->boxes]) : out[d->boxes]->desc.dim[1]) >
               (form == HONE_BOXES_YOLOV3 ? 5 : 4);
  default: return false;
  }
}

hone_status hn_decode_find(const hone_boxes_options *o, const hone_tensor *const *out,
                           const char *const *names, uint32_t n, int64_t rows, uint32_t known, hn_decoder *d,
                           hone_error *error) {
  static const hone_box_form tried[] = {HONE_BOXES_NMS, HONE_BOXES_LISTS, HONE_BOXES_ROWS};
  char text[128] = "no outputs";
  *d = (hn_decoder){.o = *o, .rows = rows, .known = known};
  if (d->o.min_score <= 0) d->o.min_score = 0.001;
  if (d->o.nms_iou <= 0) d->o.nms_iou = 0.65;
  bool good = o->form != HONE_BOXES_AUTO && fits(d, o->form, out, names, n);
  for (size_t i = 0; o->form == HONE_BOXES_AUTO && !good && i < sizeof tried / sizeof *tried; i++)
    good = fits(d, tried[i], out, names, n);
  if (good) return HONE_OK;
  if (n) hone_desc_format(&out[0]->desc, text, sizeof text);
  hn_fail(error, HONE_ERROR_INPUT, "the outputs hold no boxes in the form '%s'", hone_box_form_name(o->form));
  hn_error_got(error, "%s%s", text, n > 1 ? " and more" : "");
  hn_error_hint(
      error, "--boxes says which form it is: xyxy-score-class, lists, nms, boxes-scores, yolov3 or yolov8");
  return HONE_ERROR_INPUT;
}

/* ---- the boxes of a sample */

typedef struct row_of {
  const hn_decoder *d;
  const hone_picture_map *map;
  hn_detections *list;
} row_of;

static double clamp(double v, double most) { return v > 0 ? (v < most ? v : most) : 0; }

/* Four numbers of the tensor as a box of the picture. Nothing that is not finite, empty or too poor is added;
 * false: no memory. */
static bool add(const row_of *r, const double v[4], double score, double cls) {
  const hn_decoder *d = r->d;
  const hone_picture_map *m = r->map;
  hone_box_order order = d->o.order;
  const bool yolo = d->o.form == HONE_BOXES_YOLOV3 || d->o.form == HONE_BOXES_YOLOV8;
  if (order == HONE_BOX_USUAL) order = yolo ? HONE_BOX_CENTRE : HONE_BOX_XYXY;
  if (!(score >= d->o.min_score) || !isfinite(score) || !(cls >= 0) ||
      cls >= (d->known ? d->known : UINT32_MAX))
    return true;
  for (int k = 0; k < 4; k++)
    if (!isfinite(v[k])) return true;
  double x0 = v[0], y0 = v[1], x1 = v[2], y1 = v[3];
  if (order == HONE_BOX_YXYX) x0 = v[1], y0 = v[0], x1 = v[3], y1 = v[2];
  if (order == HONE_BOX_CENTRE)
    x0 = v[0] - v[2] / 2, y0 = v[1] - v[3] / 2, x1 = v[0] + v[2] / 2, y1 = v[1] + v[3] / 2;
  const double w = d->o.relative ? (double)m->tensor_width : 1,
               h = d->o.relative ? (double)m->tensor_height : 1;
  const hone_detection box = {.x0 = clamp(m->x0 + m->dx * w * fmin(x0, x1), (double)m->width),
                              .y0 = clamp(m->y0 + m->dy * h * fmin(y0, y1), (double)m->height),
                              .x1 = clamp(m->x0 + m->dx * w * fmax(x0, x1), (double)m->width),
                              .y1 = clamp(m->y0 + m->dy * h * fmax(y0, y1), (double)m->height),
                              .score = score,
                              .cls = (uint32_t)cls};
  if (!(box.x1 > box.x0) || !(box.y1 > box.y0)) return true;
  return hn_vec_push(r->list, box);
}

static void four(const hone_tensor *t, int64_t at, int64_t step, double v[4]) {
  for (int k = 0; k < 4; k++) v[k] = hn_get_f64(t, at + k * step);
}

/* Boxes of a sample, and where its first one is. */
static int64_t share_of(const hone_tensor *t, const hn_decoder *d, int64_t width, int64_t row,
                        int64_t *first) {
  const int64_t m = hone_desc_count(&t->desc) / width / d->rows;
  *first = row * m;
  return m;
}

static bool rows(const row_of *r, const hone_tensor *t, int64_t row) {
  const int64_t width = last(t), by = width == 7;
  int64_t first = 0, m = hone_desc_count(&t->desc) / width;
  double v[4];
  bool good = true;
  if (!by) m = share_of(t, r->d, width, row, &first);
  for (int64_t i = first; good && i < first + m; i++) {
    if (by && hn_get_f64(t, i * 7) != (double)row) continue;
    four(t, i * width + by, 1, v);
    /* with the sample's number, tools write the class before the score */
    const double a = hn_get_f64(t, i * width + by + 4), b = hn_get_f64(t, i * width + by + 5);
    good = add(r, v, by ? b : a, by ? a : b);
  }
  return good;
}

static bool lists(const row_of *r, const hone_tensor *const *out, int64_t row) {
  const hn_decoder *d = r->d;
  int64_t first, m = share_of(out[d->boxes], d, 4, row, &first);
  double v[4];
  bool good = true;
  if (d->count >= 0) m = (int64_t)clamp(hn_get_f64(out[d->count], row), (double)m);
  for (int64_t i = first; good && i < first + m; i++) {
    four(out[d->boxes], i * 4, 1, v);
    good = add(r, v, hn_get_f64(out[d->scores], i), hn_get_f64(out[d->classes], i));
  }
  return good;
}

static bool nms(const row_of *r, const hone_tensor *const *out, int64_t row) {
  const hn_decoder *d = r->d;
  const hone_tensor *p = out[d->picked];
  int64_t first, m = share_of(out[d->boxes], d, 4, row, &first);
  if (m < 1) return true;
  const int64_t classes = hone_desc_count(&out[d->scores]->desc) / d->rows / m,
                n = hone_desc_count(&p->desc) / 3;
  double v[4];
  bool good = true;
  for (int64_t i = 0; good && i < n; i++) {
    const int64_t sample = hn_get_i64(p, 3 * i), cls = hn_get_i64(p, 3 * i + 1),
                  box = hn_get_i64(p, 3 * i + 2);
    if (sample != row || cls < 0 || cls >= classes || box < 0 || box >= m) continue;
    four(out[d->boxes], (first + box) * 4, 1, v);
    good = add(r, v, hn_get_f64(out[d->scores], (row * classes + cls) * m + box), (double)cls);
  }
  return good;
}

static bool boxes_and_scores(const row_of *r, const hone_tensor *const *out, int64_t row) {
  const hn_decoder *d = r->d;
  const int64_t classes = last(out[d->scores]),
                background = d->o.background || (d->known && classes == (int64_t)d->known + 1);
  int64_t first, m = share_of(out[d->boxes], d, 4, row, &first);
  double v[4];
  bool good = true;
  for (int64_t i = first; good && i < first + m; i++) {
    four(out[d->boxes], i * 4, 1, v);
    for (int64_t c = background; good && c < classes; c++)
      good = add(r, v, hn_get_f64(out[d->scores], i * classes + c), (double)(c - background));
  }
  return good;
}

/* Number k of box i lies at i * step + k * pitch. */
static bool grid(const row_of *r, const hone_tensor *t, int64_t row) {
  const bool objects = r->d->o.form == HONE_BOXES_YOLOV3;
  const int64_t width = t->desc.dim[objects ? 2 : 1], m = t->desc.dim[objects ? 1 : 2];
  const int64_t step = objects ? width : 1, pitch = objects ? 1 : m, base = row * width * m;
  double v[4];
  bool good = true;
  for (int64_t i = 0; good && i < m; i++) {
    const int64_t at = base + i * step;
    const double object = objects ? hn_get_f64(t, at + 4 * pitch) : 1;
    if (!(object >= r->d->o.min_score)) continue;
    four(t, at, pitch, v);
    for (int64_t c = 4 + objects; good && c < width; c++)
      good = add(r, v, object * hn_get_f64(t, at + c * pitch), (double)(c - 4 - objects));
  }
  return good;
}

hone_status hn_decode_row(const hn_decoder *d, const hone_tensor *const *out, int64_t row,
                          const hone_picture_map *map, hn_detections *list, hone_error *error) {
  const row_of r = {d, map, list};
  bool good = true;
  list->len = 0;
  switch (d->o.form) {
  case HONE_BOXES_ROWS: good = rows(&r, out[d->boxes], row); break;
  case HONE_BOXES_LISTS: good = lists(&r, out, row); break;
  case HONE_BOXES_NMS: good = nms(&r, out, row); break;
  case HONE_BOXES_SCORES: good = boxes_and_scores(&r, out, row); break;
  default: good = grid(&r, out[d->boxes], row); break;
  }
  if (!good) return hn_fail_memory(error, (list->len + 1) * sizeof *list->ptr, "boxes");
  if (d->o.form >= HONE_BOXES_SCORES) hn_suppress(list, d->o.nms_iou);
  return HONE_OK;
}
