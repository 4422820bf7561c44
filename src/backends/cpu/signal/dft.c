/* DFT of f32 by passes over the factors of its length: lines lie beside each other in lanes. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/fourier/fourier.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/signal/dft.h"

enum { X, LENGTH, AXIS, LANES = HN_FOURIER_LANES };

typedef struct blob_head {
  hn_isa isa;
  hn_dft of;
  int64_t have, outer, inner, parts; /* points of a line, lines before and behind the axis, numbers a point */
  uint32_t passes, factor[HN_FOURIER_PASSES], largest;
  int64_t sine_at, bytes;
} blob_head;

/* A constant input as the descriptor's function reads it. */
static bool constant(const hone_step *s, uint32_t i, hone_tensor *room, const hone_tensor **out) {
  *out = NULL;
  if (!hn_step_has(s, i)) return true;
  if (!s->input[i].constant) return false;
  *room = (hone_tensor){s->input[i].desc, (void *)(uintptr_t)s->input[i].constant};
  *out = room;
  return true;
}

/* Fours, then a two, then odd factors; false: a prime too large for its sums to be short. */
static bool factorise(blob_head *h) {
  enum { LARGEST = 127 };
  int64_t n = h->of.n;
  h->passes = 0, h->largest = 1;
  for (; n % 4 == 0 && h->passes < HN_FOURIER_PASSES; n /= 4) h->factor[h->passes++] = 4;
  if (n % 2 == 0 && h->passes < HN_FOURIER_PASSES) n /= 2, h->factor[h->passes++] = 2;
  for (int64_t p = 3; n > 1; p += 2) {
    if (p > LARGEST) return false;
    for (; n % p == 0; n /= p) {
      if (h->passes == HN_FOURIER_PASSES) return false;
      h->factor[h->passes++] = h->largest = (uint32_t)p;
    }
  }
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_fourier_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  const hone_tensor_desc *x = &s->input[X].desc, *y = &s->output[0].desc;
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(y))
    return hn_refuse(why, "an operand is not row-major f32 of a known shape");
  hone_tensor room[2];
  const hone_tensor *length, *axis;
  if (!constant(s, LENGTH, &room[0], &length) || !constant(s, AXIS, &room[1], &axis))
    return hn_refuse(why, "the length or the axis is computed");
  if (hn_dft_of(s->node, x, length, length != NULL, axis, &h->of, NULL) || h->of.n < 1)
    return hn_refuse(why, "its attributes");
  if (hone_desc_count(y) < 1) return hn_refuse(why, "an empty operand");
  if (h->of.n > INT32_MAX / 8 || !factorise(h))
    return hn_refuse(why, "%lld points have a large prime factor", (long long)h->of.n);
  h->have = x->dim[h->of.axis], h->parts = x->dim[x->rank - 1];
  h->outer = hn_dims(x, 0, h->of.axis), h->inner = hn_dims(x, h->of.axis + 1, x->rank - 1);
  const size_t table = hn_round_up((size_t)h->of.n * sizeof(float), 64), at = hn_round_up(sizeof *h, 64);
  h->sine_at = (int64_t)(at + table);
  h->bytes = (int64_t)(at + 2 * table);
  return true;
}

/* Of a thread: two times the points of all lanes, and the sums of an odd factor. */
static size_t thread_floats(const blob_head *h) {
  return 2 * LANES * (2 * (size_t)h->of.n + (size_t)h->largest + 1);
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  double each = 4; /* flops a point and pass of two */
  for (uint32_t i = 0; i < h->passes; i++)
    each += h->factor[i] <= 4 ? 4.0 * h->factor[i] : 3.0 * h->factor[i];
  const double points = (double)h->of.n * (double)(h->outer * h->inner);
  return hn_step_seconds(m, points * each, s->cost.bytes, 0.2) + points * 1e-9 / m->threads;
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  n->blob_bytes = (size_t)h->bytes;
  n->workspace_bytes = thread_floats(h) * m->threads * sizeof(float);
}

static float *table(void *blob, int64_t at) { return (float *)(void *)((char *)blob + at); }

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)s, (void)error;
  memcpy(blob, h, sizeof *h);
  float *cosine = table(blob, (int64_t)hn_round_up(sizeof *h, 64)), *sine = table(blob, h->sine_at);
  for (int64_t i = 0; i < h->of.n; i++) {
    const double angle = 2 * M_PI * (double)i / (double)h->of.n;
    cosine[i] = (float)cos(angle);
    sine[i] = (float)((h->of.inverse ? 1 : -1) * sin(angle));
  }
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

/* Point k of the lanes' lines; from: where the lines begin. */
static void load_point(const blob_head *h, const float *x, const int64_t *from, int64_t lanes, int64_t k,
                       float *to) {
  const int64_t at = k * h->inner * h->parts;
  for (int64_t l = 0; l < lanes; l++) {
    to[l] = x[from[l] + at];
    to[LANES + l] = h->parts == 2 ? x[from[l] + at + 1] : 0;
  }
}

static void load(const blob_head *h, const float *x, const int64_t *from, int64_t lanes, float *to) {
  const int64_t n = h->of.n, given = h->have < n ? h->have : n;
  memset(to, 0, (size_t)n * 2 * LANES * sizeof *to);
  for (int64_t k = 0; k < given; k++) load_point(h, x, from, lanes, k, to + k * 2 * LANES);
  /* The rest of a real signal's spectrum is the first half, conjugate. */
  for (int64_t k = n / 2 + 1; k < n && h->of.parts == 1; k++)
    for (int64_t l = 0; l < LANES; l++) {
      const float *a = to + (n - k) * 2 * LANES;
      to[k * 2 * LANES + l] = a[l], to[(2 * k + 1) * LANES + l] = -a[LANES + l];
    }
}

static void store(const blob_head *h, float *y, const int64_t *from, int64_t lanes, const float *v) {
  for (int64_t k = 0; k < h->of.out; k++, v += 2 * LANES) {
    float *to = y + k * h->inner * h->of.parts;
    const bool real = h->parts == 1 && hn_dft_is_real(h->of.n, k);
    for (int64_t l = 0; l < lanes; l++) {
      to[from[l]] = v[l];
      if (h->of.parts == 2) to[from[l] + 1] = real ? 0 : v[LANES + l];
    }
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const int64_t all = h->outer * h->inner, first = index * LANES,
                lanes = all - first < LANES ? all - first : LANES;
  int64_t from[LANES], to[LANES];
  for (int64_t l = 0; l < lanes; l++) {
    const int64_t o = (first + l) / h->inner, i = HN_FAULT("dft_line") ? 0 : (first + l) % h->inner;
    from[l] = (o * h->have * h->inner + i) * h->parts;
    to[l] = (o * h->of.out * h->inner + i) * h->of.parts;
  }
  hn_fourier_lines f = {.n = (size_t)h->of.n,
                        .passes = h->passes,
                        .cosine =
                            (const float *)(const void *)((const char *)r->blob + hn_round_up(sizeof *h, 64)),
                        .sine = (const float *)(const void *)((const char *)r->blob + h->sine_at),
                        .scale = h->of.inverse ? 1.0f / (float)h->of.n : 1.0f};
  memcpy(f.factor, h->factor, sizeof f.factor);
  float *a = (float *)r->workspace + thread * thread_floats(h), *b = a + f.n * 2 * LANES;
  load(h, r->in[X], from, lanes, a);
  store(h, r->out[0], to, lanes, hn_fourier_find(h->isa)->run(&f, a, b, b + f.n * 2 * LANES));
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, hn_div_up(h->outer * h->inner, LANES), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, dft, "DFT", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack, .run = run);
