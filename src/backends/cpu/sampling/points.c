#include "backends/cpu/sampling/points.h"

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "base/fault.h"
#include "base/integers.h"

enum {
  CHUNK = 64,       /* channels of pixels that are summed together */
  WORTH = 8,        /* channels from which on pixels are worth turning for */
  REUSE = 4,        /* elements of images for each of the output, up to which they are */
  MOST = 1 << 24,   /* elements of images that are turned at all: the copy is 64 MiB then */
  TILE_TAPS = 2048, /* entries of a task's tables, which stay in L1 */
  STRIP = 256       /* pixels that a task turns */
};

bool hn_points_plan(hn_points *p, hone_reason *why) {
  if (!hn_taps_find(p->isa) || !hn_transpose_find(p->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(p->isa));
  if (p->in > INT32_MAX || p->out > INT32_MAX) return hn_refuse(why, "planes of more than 2^31 elements");
  if (p->taps > HN_POINTS_TAPS) return hn_refuse(why, "%lld places for each point", (long long)p->taps);
  p->tile = TILE_TAPS / p->taps < 256 ? TILE_TAPS / p->taps : 256;
  if (p->tile > p->out) p->tile = hn_fill_up(p->out, 16);
  const double source = (double)p->images * (double)p->in, target = (double)p->groups * (double)p->out;
  p->turned = p->channels >= WORTH && source <= REUSE * target && source * (double)p->channels <= MOST;
  return true;
}

/* A thread's tables and sums. */
static size_t own_bytes(const hn_points *p) {
  const int64_t tables = p->tile * (2 * p->taps + 1), sums = p->turned ? p->tile * CHUNK : 0;
  return hn_round_up((size_t)(tables + sums) * sizeof(float), 64);
}

static size_t turned_bytes(const hn_points *p) {
  return p->turned ? hn_round_up((size_t)(p->images * p->in * p->channels) * sizeof(float), 64) : 0;
}

size_t hn_points_workspace(const hn_points *p, uint32_t threads) {
  return turned_bytes(p) + own_bytes(p) * threads;
}

double hn_points_seconds(const hn_points *p, const hone_machine *m) {
  const double out = (double)(p->groups * p->out) * (double)p->channels,
               in = (double)(p->images * p->in) * (double)p->channels;
  /* A gathered element takes the time of 16 that lie in a row; a table's entry that of 50. */
  const double sums = 2 * out * (double)p->taps * (p->turned ? 1 : 16),
               tables = 50 * (double)(p->groups * p->out * p->taps);
  return hn_step_seconds(m, sums + tables, 4 * (out + in * (p->turned ? 3 : 1)), 0.5);
}

typedef struct job {
  const hone_step_run *run;
  const hn_points *p;
  const struct hn_transpose_ops *turn;
  const struct hn_taps_ops *ops;
  const float *x;
  float *y;
  hn_points_fill fill;
  hn_points_image image;
  int64_t strips, tiles, parts; /* parts: of the channels, each a task of its own */
} job;

static void turn(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_points *p = j->p;
  const int64_t image = index / j->strips, first = index % j->strips * STRIP,
                n = p->in - first < STRIP ? p->in - first : STRIP;
  float *to = (float *)j->run->workspace + (image * p->in + first) * p->channels;
  (void)thread;
  j->turn->matrix[2](to, p->channels, j->x + image * p->channels * p->in + first, p->in, (size_t)p->channels,
                     (size_t)n);
}

static void sample(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_points *p = j->p;
  const int64_t part = index % j->parts, group = index / j->parts / j->tiles,
                first = index / j->parts % j->tiles * p->tile,
                n = p->out - first < p->tile ? p->out - first : p->tile,
                image = j->image ? j->image(j->run, group) : group;
  unsigned char *own = (unsigned char *)j->run->workspace + turned_bytes(p) + own_bytes(p) * thread;
  hn_point_tables t = {j->ops, p->tile, (int32_t *)(void *)own, NULL, NULL};
  t.weight = (float *)(void *)(t.at + p->tile * p->taps), t.base = t.weight + p->tile * p->taps;
  float *sums = t.base + p->tile, *y = j->y + group * p->channels * p->out + first;
  const hn_taps taps = {t.at, t.weight, t.base, (size_t)p->tile, (size_t)p->taps, (size_t)n};
  j->fill(j->run, group, first, n, &t);
  if (!p->turned) {
    const float *x = j->x + (HN_FAULT("points_image") ? 0 : image) * p->channels * p->in;
    const int64_t end = (part + 1) * CHUNK < p->channels ? (part + 1) * CHUNK : p->channels;
    for (int64_t c = part * CHUNK; c < end; c++)
      j->ops->plane(y + c * p->out, x + c * p->in, (size_t)p->in, &taps);
    return;
  }
  const float *x = (const float *)j->run->workspace + image * p->channels * p->in;
  const int64_t c = part * CHUNK, some = p->channels - c < CHUNK ? p->channels - c : CHUNK;
  j->ops->pixels(sums, some, x + c, p->channels, (size_t)some, &taps);
  j->turn->matrix[2](y + c * p->out, p->out, sums, some, (size_t)n, (size_t)some);
}

void hn_points_run(const hone_step_run *r, const hn_points *p, const float *x, float *y, hn_points_fill fill,
                   hn_points_image image) {
  job j = {r,
           p,
           hn_transpose_find(p->isa),
           hn_taps_find(p->isa),
           x,
           y,
           fill,
           image,
           hn_div_up(p->in, STRIP),
           hn_div_up(p->out, p->tile),
           hn_div_up(p->channels, CHUNK)};
  if (p->turned) r->parallel(r->pool, p->images * j.strips, turn, &j);
  r->parallel(r->pool, p->groups * j.tiles * j.parts, sample, &j);
}
