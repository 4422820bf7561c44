/* RoiAlign of f32 images. An image is turned to pixels of neighbouring channels, some channels at a time; a
 * cell of a region is then a sum over a few pixels, or the largest of them. The samples of a cell lie on a
 * grid, and many fall between the same pixels: their weights are added along each axis first, so that an
 * average reads every pixel once. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/taps/taps.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/detection/roi.h"

enum { X, ROIS, BATCH };

enum {
  TURNED = 1 << 20, /* elements of images that are turned at a time, where these are channels enough */
  CHANNELS = 64,    /* that are, at least */
  SUMS = 1 << 14,   /* elements of a task's results */
  TABLE = 512,      /* pixels that are summed at a time */
  STRIP = 256       /* pixels that a task turns */
};

typedef struct head {
  hn_isa isa;
  hn_roi_options o;
  int64_t images, channels, height, width, regions;
  int64_t chunk;         /* channels that are turned and sampled together */
  int64_t lines;         /* rows of cells of a task */
  int64_t rows, columns; /* pixels along an axis that a cell reads, at most */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc, *rois = &s->input[ROIS].desc, *of = &s->input[BATCH].desc,
                         *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(rois) || !hn_step_plain(of) || !hn_step_plain_f32(y))
    return hn_refuse(why, "not row-major f32 of a known shape");
  if (hone_desc_count(x) < 1 || hone_desc_count(y) < 1) return hn_refuse(why, "an empty operand");
  if (hn_roi_options_of(s->node, &h->o, NULL)) return hn_refuse(why, "wrong attributes");
  if (x->rank != 4 || y->rank != 4 || of->dtype != HONE_DTYPE_I64 || hone_desc_count(of) != y->dim[0] ||
      hone_desc_count(rois) != 4 * y->dim[0] || y->dim[2] != h->o.height || y->dim[3] != h->o.width)
    return hn_refuse(why, "operands do not fit");
  h->isa = hn_isa_of(m->isa);
  if (!hn_taps_find(h->isa) || !hn_transpose_find(h->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  h->images = x->dim[0], h->channels = x->dim[1], h->height = x->dim[2], h->width = x->dim[3];
  h->regions = y->dim[0];
  const int64_t pixels = h->height * h->width, all = h->images * pixels;
  if (pixels > INT32_MAX) return hn_refuse(why, "planes of more than 2^31 elements");
  h->chunk = hn_min(h->channels, hn_max(CHANNELS, TURNED / all / CHANNELS * CHANNELS));
  h->lines = hn_min(h->o.height, hn_max(1, SUMS / (h->chunk * h->o.width)));
  h->rows = h->o.ratio ? hn_min(2 * h->o.ratio, h->height) : h->height;
  h->columns = h->o.ratio ? hn_min(2 * h->o.ratio, h->width) : h->width;
  return true;
}

/* A pixel along one axis, and what of a cell it is. */
typedef struct tap {
  double weight;
  int64_t at;
} tap;

/* A thread's memory. */
typedef struct own {
  tap *row, *column;           /* [rows] of one row of cells, [width][columns] of all */
  int64_t *n;                  /* [width] columns that there are */
  int32_t *at;                 /* [TABLE] */
  float *weight, *more, *sums; /* [TABLE], [chunk], [lines][width][chunk] */
} own;

static size_t carve(unsigned char *base, size_t *at, size_t bytes, void **out) {
  if (out) *out = base + *at;
  return *at += hn_round_up(bytes, 64);
}

/* Its parts from `base` on, where that is given; returns its bytes. */
static size_t own_of(const head *h, unsigned char *base, own *o) {
  const size_t width = (size_t)h->o.width, chunk = (size_t)h->chunk;
  const size_t bytes[] = {(size_t)h->rows * sizeof(tap),
                          width * (size_t)h->columns * sizeof(tap),
                          width * sizeof(int64_t),
                          TABLE * sizeof(int32_t),
                          TABLE * sizeof(float),
                          chunk * sizeof(float),
                          (size_t)h->lines * width * chunk * sizeof(float)};
  void *part[sizeof bytes / sizeof *bytes];
  size_t at = 0;
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
    carve(base, &at, bytes[i], base ? &part[i] : NULL);
  if (base) *o = (own){part[0], part[1], part[2], part[3], part[4], part[5], part[6]};
  return at;
}

static size_t turned_bytes(const head *h) {
  return hn_round_up((size_t)(h->images * h->height * h->width * h->chunk) * sizeof(float), 64);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  head h;
  return describe(s, m, &h, why);
}

/* An average reads a pixel more a side than a cell has samples, if these are as dense as pixels; without a
 * ratio there are mostly two. */
static double cost(const hone_step *s, const hone_machine *m) {
  head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double side = h.o.ratio ? (double)h.o.ratio : 2, cells = (double)(h.regions * h.o.height * h.o.width),
               taps = h.o.max ? 4 * side * side : (side + 1) * (side + 1), out = cells * (double)h.channels,
               in = (double)(h.images * h.height * h.width) * (double)h.channels,
               tables = 40 * cells * taps * (double)hn_div_up(h.channels, h.chunk);
  return hn_step_seconds(m, (h.o.max ? 4 : 2) * out * taps + tables, 4 * (3 * in + 3 * out), 0.3);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = turned_bytes(&h) + own_of(&h, NULL, NULL) * m->threads;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  return describe(s, m, blob, &why) ? HONE_OK : hn_not_described(s, &why, error);
}

/* ------------------------------------------------------------------ a cell */

typedef struct job {
  const hone_step_run *run;
  const head *h;
  const struct hn_transpose_ops *turn;
  const struct hn_taps_ops *ops;
  int64_t first, some;    /* channels */
  int64_t strips, groups; /* of an image's pixels; of a region's rows of cells */
} job;

static hone_status region_of(const hone_step_run *r, int64_t index, hn_roi_region *g, hone_error *error) {
  const head *h = r->blob;
  const float *v = (const float *)r->in[ROIS] + 4 * index;
  const double corner[] = {(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
  return hn_roi_region_of(r->step->node, &h->o, index, corner, ((const int64_t *)r->in[BATCH])[index],
                          h->images, g, error);
}

/* The pixels of cell k along an axis in rising order; returns how many. */
static int64_t line_up(tap *t, double start, double cell, int64_t k, int64_t samples, int64_t size) {
  int64_t n = 0;
  for (int64_t i = 0; i < samples; i++) {
    hn_roi_sample s;
    if (!hn_roi_sample_of(start, cell, k, cell < 0 ? samples - 1 - i : i, samples, size, &s)) continue;
    for (int q = 0; q < 2; q++) {
      const double weight = q ? s.part : 1 - s.part;
      if (n > 0 && t[n - 1].at == s.at[q])
        t[n - 1].weight += weight;
      else if (n > 1 && t[n - 2].at == s.at[q])
        t[n - 2].weight += weight;
      else
        t[n++] = (tap){weight, s.at[q]};
    }
  }
  return n;
}

/* One cell in the making: its table, and whether there are results already. */
typedef struct cell {
  const job *j;
  const own *o;
  const float *x;
  float *to, base;
  size_t n;
  bool begun;
} cell;

static void flush(cell *c) {
  const head *h = c->j->h;
  const size_t some = (size_t)c->j->some;
  const hn_taps taps = {c->o->at, c->o->weight, &c->base, 1, c->n, 1};
  float *to = c->begun ? c->o->more : c->to;
  (h->o.max ? c->j->ops->largest : c->j->ops->pixels)(to, 0, c->x, (ptrdiff_t)some, some, &taps);
  if (c->begun && !HN_FAULT("roi_more"))
    for (size_t k = 0; k < some; k++) c->to[k] = h->o.max ? fmaxf(c->to[k], to[k]) : c->to[k] + to[k];
  c->begun = true, c->n = 0;
}

static void add(cell *c, int64_t at, double weight) {
  if (c->n == TABLE) flush(c);
  c->o->at[c->n] = (int32_t)at, c->o->weight[c->n] = (float)weight;
  c->n++;
}

static void average(cell *c, const tap *row, int64_t rows, const tap *column, int64_t columns, double scale) {
  const int64_t width = c->j->h->width;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      add(c, row[i].at * width + column[k].at, row[i].weight * column[k].weight * scale);
  flush(c);
}

/* "max" is defined over the weighted corners of all samples; those outside of the image are 0. */
static void largest(cell *c, const hn_roi_region *g, int64_t ph, int64_t pw) {
  const head *h = c->j->h;
  c->base = g->samples_h && g->samples_w ? NAN : 0;
  for (int64_t i = 0; i < g->samples_h; i++) {
    hn_roi_sample y, x;
    const bool there = hn_roi_sample_of(g->y, g->cell_h, ph, i, g->samples_h, h->height, &y);
    for (int64_t k = 0; k < g->samples_w; k++) {
      if (!there || !hn_roi_sample_of(g->x, g->cell_w, pw, k, g->samples_w, h->width, &x)) {
        add(c, -1, 0);
        continue;
      }
      for (int q = 0; q < 4; q++)
        add(c, y.at[q >> 1] * h->width + x.at[q & 1],
            (q >> 1 ? y.part : 1 - y.part) * (q & 1 ? x.part : 1 - x.part));
    }
  }
  flush(c);
}

/* ------------------------------------------------------------------ tasks */

static void turn(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  const int64_t pixels = h->height * h->width, image = index / j->strips, first = index % j->strips * STRIP,
                n = hn_min(STRIP, pixels - first);
  (void)thread;
  j->turn->matrix[2]((float *)j->run->workspace + (image * pixels + first) * j->some, j->some,
                     (const float *)j->run->in[X] + (image * h->channels + j->first) * pixels + first, pixels,
                     (size_t)j->some, (size_t)n);
}

static void sample(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  const int64_t r = index / j->groups, line = index % j->groups * h->lines,
                lines = hn_min(h->lines, h->o.height - line), out = h->o.height * h->o.width;
  own o;
  hn_roi_region g;
  region_of(j->run, r, &g, NULL); /* has been looked at */
  own_of(h, (unsigned char *)j->run->workspace + turned_bytes(h) + own_of(h, NULL, NULL) * thread, &o);
  cell c = {.j = j, .o = &o};
  c.x = (const float *)j->run->workspace + g.image * h->height * h->width * j->some;
  const double scale = 1 / fmax((double)(g.samples_h * g.samples_w), 1);
  for (int64_t pw = 0; pw < h->o.width && !h->o.max; pw++)
    o.n[pw] = line_up(o.column + pw * h->columns, g.x, g.cell_w, pw, g.samples_w, h->width);
  for (int64_t ph = line; ph < line + lines; ph++) {
    const int64_t rows = h->o.max ? 0 : line_up(o.row, g.y, g.cell_h, ph, g.samples_h, h->height);
    for (int64_t pw = 0; pw < h->o.width; pw++) {
      c.to = o.sums + ((ph - line) * h->o.width + pw) * j->some, c.begun = false;
      if (h->o.max)
        largest(&c, &g, ph, pw);
      else
        average(&c, o.row, rows, o.column + pw * h->columns, o.n[pw], scale);
    }
  }
  float *y = (float *)j->run->out[0] + (r * h->channels + j->first) * out + line * h->o.width;
  j->turn->matrix[2](y, out, o.sums, j->some, (size_t)(lines * h->o.width), (size_t)j->some);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  hn_roi_region g;
  for (int64_t i = 0; i < h->regions; i++) {
    const hone_status status = region_of(r, i, &g, error);
    if (status) return status;
  }
  job j = {.run = r,
           .h = h,
           .turn = hn_transpose_find(h->isa),
           .ops = hn_taps_find(h->isa),
           .strips = hn_div_up(h->height * h->width, STRIP),
           .groups = hn_div_up(h->o.height, h->lines)};
  for (j.first = 0; j.first < h->channels; j.first += h->chunk) {
    j.some = hn_min(h->chunk, h->channels - j.first);
    r->parallel(r->pool, h->images * j.strips, turn, &j);
    r->parallel(r->pool, h->regions * j.groups, sample, &j);
  }
  return HONE_OK;
}

HN_TACTIC(cpu, roi_align, "RoiAlign", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
