/* LRN: values divided by a power of the squares of their neighbouring channels; row-major and channels-last.
 */
#include <string.h>

#include "backends/cpu/kernels/norm/norm.h"
#include "backends/cpu/normalize/images.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

/* Values of a channel (row-major), or channels of a pixel, that one call does: with the rows of its
 * neighbours they stay in L1. Windows are no wider. */
enum { BLOCK = 256, PIXELS = 64 /* of a task, channels-last */ };

typedef struct blob_head {
  hn_images images;
  int64_t before, after; /* neighbours of a channel */
  float alpha, beta, bias;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  if (!hn_step_is_f32(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "LRN has no epilogue");
  if (hone_desc_count(x) == 0 || !hone_desc_same_dims(x, y)) return hn_refuse(why, "an empty tensor");
  const int64_t size = hone_node_int(s->node, "size", 1);
  if (size > BLOCK) return hn_refuse(why, "more than %d neighbours", BLOCK);
  h->before = (size - 1) / 2, h->after = size - 1 - h->before;
  h->alpha = hone_node_float(s->node, "alpha", 1e-4f) / (float)size;
  h->beta = hone_node_float(s->node, "beta", 0.75f);
  h->bias = hone_node_float(s->node, "bias", 1);
  if (!(h->bias > 0) || !(h->alpha > 0)) return hn_refuse(why, "the power may be one of a negative number");
  return hn_images_of(s, m, &h->images, why);
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, (2 * (double)hone_node_int(s->node, "size", 1) + 45) * n, 8 * n, 0.4);
}

static struct hn_norm_neighbours values_of(const blob_head *h) {
  return (struct hn_norm_neighbours){.alpha = h->alpha, .beta = h->beta, .bias = h->bias};
}

/* A block of values of all channels of an image. */
static void plane_task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->images.isa);
  const int64_t blocks = hn_div_up(h->images.pixels, BLOCK), n = index / blocks, p = index % blocks * BLOCK,
                at = n * h->images.channels * h->images.pixels + p;
  const float *x = (const float *)r->in[0] + at;
  float *y = (float *)r->out[0] + at;
  struct hn_norm_neighbours v = values_of(h);
  v.step = h->images.pixels, v.n = (size_t)hn_min(BLOCK, h->images.pixels - p);
  (void)thread;
  for (int64_t c = 0; c < h->images.channels; c++) {
    const int64_t first = hn_max(0, c - h->before + HN_FAULT("lrn_first_neighbour")),
                  last = hn_min(h->images.channels - 1, c + h->after);
    v.x = x + c * h->images.pixels, v.y = y + c * h->images.pixels;
    v.from = x + first * h->images.pixels, v.taps = (size_t)hn_max(0, last - first + 1);
    ops->neighbours(&v);
  }
}

/* The channels of a pixel, with zeros where there are no neighbours. */
static void pixel(const blob_head *h, const struct hn_norm_ops *ops, const float *x, float *y) {
  float space[2 * BLOCK];
  struct hn_norm_neighbours v = values_of(h);
  v.step = 1, v.taps = (size_t)(h->before + h->after + 1), v.from = space;
  for (int64_t c = 0; c < h->images.channels; c += BLOCK) {
    const int64_t n = hn_min(BLOCK, h->images.channels - c), begin = c - h->before,
                  all = n + h->before + h->after, lo = hn_max(begin, 0),
                  hi = hn_min(begin + all, h->images.channels);
    memset(space, 0, (size_t)(lo - begin) * sizeof *space);
    memcpy(space + (lo - begin), x + lo, (size_t)(hi - lo) * sizeof *space);
    memset(space + (hi - begin), 0, (size_t)(begin + all - hi) * sizeof *space);
    v.x = x + c, v.y = y + c, v.n = (size_t)n;
    if (HN_FAULT("lrn_block") && c > 0) v.x = x;
    ops->neighbours(&v);
  }
}

static void pixels_task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->images.isa);
  const int64_t blocks = hn_div_up(h->images.pixels, PIXELS), n = index / blocks,
                p0 = index % blocks * PIXELS, p1 = hn_min(p0 + PIXELS, h->images.pixels);
  const float *x = (const float *)r->in[0] + n * h->images.image_x;
  float *y = (float *)r->out[0] + n * h->images.image_y;
  (void)thread;
  for (int64_t p = p0; p < p1; p++) pixel(h, ops, x + p * h->images.pixel_x, y + p * h->images.pixel_y);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  if (h->images.channels_last)
    r->parallel(r->pool, h->images.batch * hn_div_up(h->images.pixels, PIXELS), pixels_task,
                (void *)(uintptr_t)r);
  else
    r->parallel(r->pool, h->images.batch * hn_div_up(h->images.pixels, BLOCK), plane_task,
                (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, lrn, "LRN", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack, .run = run);
