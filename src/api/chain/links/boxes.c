/* boxes: regions of a probability map become quadrangles in the picture that the map is of (the
 * post-processing of Differentiable Binarization, https://arxiv.org/abs/1911.08947): threshold, connected
 * regions, the smallest rectangle around each, score, unclip. A rectangle whose outline is moved outwards by
 * d = area * unclip / perimeter, with rounded corners, has the same rectangle grown by d on each side around
 * it. */
#include "api/chain/chain.h"
#include "api/chain/regions.h"
#include "base/error.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

typedef struct settings {
  double threshold, score, unclip, least;
  int64_t most;
  int shape, order;
} settings;

enum { SHAPE_ROTATED, SHAPE_UPRIGHT };
enum { ORDER_READING, ORDER_MAP, ORDER_SCORE };
static const char *const shapes[] = {"rotated", "upright", NULL};
static const char *const orders[] = {"reading", "map", "score", NULL};

static const settings defaults = {.threshold = 0.3, .score = 0.6, .unclip = 1.5, .least = 3, .most = 1000};
static const hn_member members[] = {
    {"threshold", HN_MEMBER_REAL, offsetof(settings, threshold), -1e6, 1e6, NULL},
    {"score", HN_MEMBER_REAL, offsetof(settings, score), -1e6, 1e6, NULL},
    {"unclip", HN_MEMBER_REAL, offsetof(settings, unclip), 0, 100, NULL},
    {"least", HN_MEMBER_REAL, offsetof(settings, least), 0, 1e6, NULL},
    {"most", HN_MEMBER_COUNT, offsetof(settings, most), 1, 100000, NULL},
    {"shape", HN_MEMBER_WORD, offsetof(settings, shape), 0, 0, shapes},
    {"order", HN_MEMBER_WORD, offsetof(settings, order), 0, 0, orders},
    {0}};

typedef HN_VEC(hone_chain_box) boxes;

static double clipped(double v, double most) { return v < 0 ? 0 : v > most && most > 0 ? most : v; }

/* From pixels of the map to those of the picture. */
static hone_chain_box in_picture(const hn_rectangle *r, const hone_picture_map *m, int64_t height,
                                 int64_t width, double score, uint32_t item) {
  hone_chain_box b = {.score = (float)score, .item = item};
  double x[4], y[4];
  hn_rectangle_corners(r, x, y);
  for (int k = 0; k < 4; k++) {
    if (m) {
      x[k] = clipped(m->x0 + m->dx * x[k] * (double)m->tensor_width / (double)width, (double)m->width);
      y[k] = clipped(m->y0 + m->dy * y[k] * (double)m->tensor_height / (double)height, (double)m->height);
    }
    b.x[k] = (float)x[k];
    b.y[k] = (float)y[k];
  }
  return b;
}

static hone_status find(hone_chain *c, const settings *o, const float *map, int64_t height, int64_t width,
                        const hone_picture_map *m, uint32_t item, boxes *found, hone_error *error) {
  hn_region *region;
  uint32_t n;
  const hone_status status =
      hn_regions_find(map, height, width, (float)o->threshold, o->shape == SHAPE_UPRIGHT, (uint32_t)o->most,
                      &c->scratch, &region, &n, error);
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    hn_rectangle r = region[i].around;
    if (2 * fmin(r.w, r.h) < o->least) continue;
    const double score = hn_rectangle_mean(&r, map, height, width);
    if (score < o->score) continue;
    const double grown = o->unclip * r.w * r.h / (r.w + r.h); /* 4wh unclip / 4(w + h) */
    r.w += grown;
    r.h += grown;
    if (!hn_vec_push(found, in_picture(&r, m, height, width, score, item)))
      return hn_fail_memory(error, found->len * sizeof *found->ptr, "boxes");
  }
  return status;
}

/* ------------------------------------------------------------------ order */

static float middle_y(const hone_chain_box *b) { return (b->y[0] + b->y[1] + b->y[2] + b->y[3]) / 4; }
static float middle_x(const hone_chain_box *b) { return (b->x[0] + b->x[1] + b->x[2] + b->x[3]) / 4; }

static float side(const hone_chain_box *b) { return hypotf(b->x[3] - b->x[0], b->y[3] - b->y[0]); }

static int by_height(const void *a, const void *b) {
  const hone_chain_box *p = a, *q = b;
  if (p->item != q->item) return p->item < q->item ? -1 : 1;
  const float d = middle_y(p) - middle_y(q);
  return d < 0 ? -1 : d > 0 ? 1 : p->x[0] < q->x[0] ? -1 : p->x[0] > q->x[0];
}

static int by_side(const void *a, const void *b) {
  const float d = middle_x(a) - middle_x(b);
  return d < 0 ? -1 : d > 0;
}

static int by_score(const void *a, const void *b) {
  const hone_chain_box *p = a, *q = b;
  if (p->item != q->item) return p->item < q->item ? -1 : 1;
  return p->score > q->score ? -1 : p->score < q->score;
}

/* Lines from top to bottom, each from left to right: a box whose middle is less than half its height below
 * that of the line's first is in that line. */
static void read_in_lines(hone_chain_box *b, uint32_t n) {
  qsort(b, n, sizeof *b, by_height);
  for (uint32_t i = 0; i < n;) {
    uint32_t k = i + 1;
    while (k < n && b[k].item == b[i].item &&
           middle_y(&b[k]) - middle_y(&b[i]) < 0.5f * fminf(side(&b[k]), side(&b[i])))
      k++;
    qsort(b + i, k - i, sizeof *b, by_side);
    i = k;
  }
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const settings *o = s->settings;
  boxes found = {0};
  hone_status status = HONE_OK;
  for (uint32_t b = 0; b < in[0]->n && status == HONE_OK; b++) {
    const hone_chain_batch *batch = &in[0]->batch[b];
    const hone_tensor_desc *d = &batch->tensor.desc;
    const int64_t height = d->rank > 2 ? d->dim[d->rank - 2] : 0,
                  width = d->rank > 2 ? d->dim[d->rank - 1] : 0;
    for (uint32_t r = 0; r < batch->n && status == HONE_OK; r++) {
      const float *map = NULL;
      int64_t count = 0;
      status = hn_batch_row(c, s, batch, r, &map, &count, error);
      if (status == HONE_OK && (count < 1 || count != height * width)) {
        char text[128];
        status = hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "'%s' is no map of one channel",
                               c->value[s->reads[0]].name);
        hn_error_got(error, "%s", hone_desc_format(d, text, sizeof text));
      }
      if (status == HONE_OK)
        status = find(c, o, map, height, width, hn_passed_map(in[0], batch->item[r]), batch->item[r], &found,
                      error);
    }
  }
  if (status == HONE_OK && found.len) {
    if (o->order == ORDER_READING) read_in_lines(found.ptr, (uint32_t)found.len);
    if (o->order == ORDER_SCORE) qsort(found.ptr, found.len, sizeof *found.ptr, by_score);
    out->box = hn_arena_memdup(&c->arena, found.ptr, found.len * sizeof *found.ptr);
    if (!out->box) status = hn_fail_memory(error, found.len * sizeof *found.ptr, "boxes");
  }
  out->n = out->items = status == HONE_OK ? (uint32_t)found.len : 0;
  hn_vec_free(&found);
  return status;
}

const hn_link hn_link_boxes = {.name = "boxes",
                               .makes = HONE_CHAIN_BOXES,
                               .n_reads = 1,
                               .reads = {{"from", HONE_CHAIN_TENSORS}},
                               .members = members,
                               .size = sizeof(settings),
                               .defaults = &defaults,
                               .run = run};
