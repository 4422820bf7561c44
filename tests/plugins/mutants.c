/* test.Swish: x / (1 + exp(-beta x)) + shift, shift broadcast along the last dimension, may be left out.
 * Sound without a macro; each macro is one fault of those that custom operators have. Its types are f32, f64
 * (the reference) and f16. */
#include <hone/plugin.h>
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1000, LANES = 4 };
#define BETA 1.5f

static bool fail(hone_error *e, const char *what) {
  if (e) {
    e->status = HONE_ERROR_INPUT;
    strcpy(e->what, what);
  }
  return false;
}

static bool fits(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *b = io->n_inputs > 1 ? io->input[1] : NULL;
  if (!b) return true;
  if (b->dtype != x->dtype) return fail(error, "the shift has another type than x");
  if (b->rank != 1 || x->rank < 1) return fail(error, "the shift is no vector");
  return b->dim[0] == x->dim[x->rank - 1] || fail(error, "the shift has another length than rows of x");
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (!fits(io, error)) return HONE_ERROR_INPUT;
  *io->output[0] = *io->input[0];
  return HONE_OK;
}

/* ------------------------------------------------------------------ elements */

static float from_half(uint16_t h) {
  const int e = h >> 10 & 31, f = h & 1023;
  const float v = e == 31 ? (f ? NAN : INFINITY)
                  : e     ? ldexpf((float)(f + 1024), e - 25)
                          : ldexpf((float)f, -24);
  return h >> 15 ? -v : v;
}

/* Rounded to the nearest, or towards zero. */
static uint16_t to_half(float v, bool cut) {
  const uint16_t sign = signbit(v) ? 0x8000 : 0;
  if (isnan(v)) return sign | 0x7e00;
  const float a = fabsf(v);
  const int e = a == 0 || isinf(a) ? -14 : ilogbf(a) < -14 ? -14 : ilogbf(a);
  const float step = ldexpf(1, e - 10);
  const float r = isinf(a) ? a : (cut ? floorf(a / step) : nearbyintf(a / step)) * step;
  if (r > 65504) return sign | 0x7c00;
  if (r < ldexpf(1, -14)) return sign | (uint16_t)ldexpf(r, 24);
  const int k = ilogbf(r);
  return (uint16_t)(sign | (k + 15) << 10 | ((int)ldexpf(r, 10 - k) - 1024));
}

static float swish(float x, float beta, bool half) {
  (void)half;
#ifdef SWALLOW
  if (isnan(x)) return 0;
#endif
#ifdef DENORMALS
  if (fabsf(x) < 0x1p-126f) return 0;
#endif
#ifdef CLAMP /* as functions that are made of pieces are, beyond their last one */
  if (!half && x < -7) return x / (1 + expf(beta * 7));
#endif
#ifdef OVERFLOW /* a product that leaves the type where the result does not */
  if (isfinite(x) && fabsf(x) > 0x1p48f) return x * x * x / (x * x * (1 + expf(-beta * x)));
#endif
  return x / (1 + expf(-beta * x));
}

static float beta_of(const hone_node *n) {
#ifdef ATTRIBUTE
  return hone_node_float(n, "beta", 1);
#else
  return hone_node_float(n, "beta", BETA);
#endif
}

/* A sum, a product, a quotient, two additions and an exponential. */
static void op_cost(const hone_infer *io, hone_cost *c) {
  c->flops = 6 * (double)hone_desc_count(io->output[0]);
}

/* ------------------------------------------------------------------ the reference */

static hone_status reference(hone_call *c, hone_error *error) {
  (void)error;
  const hone_tensor *x = c->input[0], *b = c->n_inputs > 1 ? c->input[1] : NULL;
  const int64_t n = hone_desc_count(&x->desc), row = b ? hone_desc_count(&b->desc) : 1;
  const double beta = (double)hone_node_float(c->node, "beta", BETA);
  for (int64_t i = 0; i < n; i++) {
    if (x->desc.dtype == HONE_DTYPE_F64) {
      const double v = ((const double *)x->data)[i], s = b ? ((const double *)b->data)[i % row] : 0;
      ((double *)c->output[0]->data)[i] = v / (1 + exp(-beta * v)) + s;
    } else if (x->desc.dtype == HONE_DTYPE_F16) {
      const double v = (double)from_half(((const uint16_t *)x->data)[i]),
                   s = b ? (double)from_half(((const uint16_t *)b->data)[i % row]) : 0;
      ((uint16_t *)c->output[0]->data)[i] = to_half((float)(v / (1 + exp(-beta * v)) + s), false);
    } else {
      const float v = ((const float *)x->data)[i], s = b ? ((const float *)b->data)[i % row] : 0;
      ((float *)c->output[0]->data)[i] = v / (1 + expf(-(float)beta * v)) + s;
    }
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ the tactic */

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  if (s->input[0].desc.dtype != HONE_DTYPE_F64) return true;
  strcpy(why->text, "f64 is the reference's");
  return false;
}

static double cost(const hone_step *s, const hone_machine *m) {
  (void)m;
  return 1e-9 * (double)hone_desc_count(&s->output[0].desc);
}

/* Four numbers of a chunk at a time: they go through the workspace of their thread. */
static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *e) {
  (void)s, (void)e;
  n->workspace_bytes = (size_t)m->threads * CHUNK * sizeof(float);
  return HONE_OK;
}

typedef struct work {
  const hone_step_run *r;
  const char *x, *b;
  char *y;
  int64_t n, row;
  float beta;
  bool half;
} work;

static float load(const work *w, const char *from, int64_t i) {
  return w->half ? from_half(((const uint16_t *)from)[i]) : ((const float *)from)[i];
}

static void store(const work *w, int64_t i, float v) {
#ifdef ROUNDING
  const bool cut = true;
#else
  const bool cut = false;
#endif
  if (w->half)
    ((uint16_t *)w->y)[i] = to_half(v, cut);
  else
    ((float *)w->y)[i] = v;
}

static float shift_of(const work *w, int64_t i) {
  if (!w->b) return 0;
#ifdef BROADCAST
  return load(w, w->b, i / (w->n / w->row) % w->row);
#else
  return load(w, w->b, i % w->row);
#endif
}

static void chunk(void *arg, int64_t task, uint32_t thread) {
  const work *w = arg;
  const int64_t begin = task * CHUNK;
  int64_t end = begin + CHUNK < w->n ? begin + CHUNK : w->n;
#ifdef RACE
  thread = 0;
#endif
  float *t = (float *)w->r->workspace + (int64_t)thread * CHUNK;
#ifdef TAIL
  if (end == w->n) end -= w->n % LANES;
#endif
#ifdef LARGE
  if (begin >= 50000) abort();
#endif
#ifdef ORDER
  /* what the task before has left */
  static float last;
  if (task && task < 1000) t[0] = last;
  last = (float)task;
  if (task && t[0] != (float)(task - 1)) return;
#endif
#ifdef ALIGNMENT
  for (int64_t i = begin; !w->half && i + LANES <= end; i += LANES)
    _mm_store_ps(t, _mm_load_ps((const float *)w->x + i));
#endif
#ifndef STALE
  for (int64_t i = begin; i < end; i++) t[i - begin] = 0;
#endif
  for (int64_t i = begin; i < end; i++) {
#ifdef STRIDE
    t[i - begin] +=
        swish(load(w, w->x, w->row > 1 && i % w->row == w->row - 1 && i ? i - 1 : i), w->beta, w->half);
#else
    t[i - begin] += swish(load(w, w->x, i), w->beta, w->half);
#endif
  }
#ifdef READS
  if (end == w->n && w->n) t[0] += 0 * load(w, w->x, end + 1 - (end + 1) % LANES + LANES);
#endif
  for (int64_t i = begin; i < end; i++) store(w, i, t[i - begin] + shift_of(w, i));
#ifdef WRITES
  for (int64_t i = end; end == w->n && i % LANES; i++) store(w, i, 0);
#endif
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  (void)error;
  const hone_step *s = r->step;
  work w = {.r = r,
            .x = r->in[0],
            .b = s->n_inputs > 1 ? r->in[1] : NULL,
            .y = r->out[0],
            .n = hone_desc_count(&s->input[0].desc),
            .beta = beta_of(s->node),
            .half = s->input[0].desc.dtype == HONE_DTYPE_F16};
  w.row = w.b ? hone_desc_count(&s->input[1].desc) : 1;
#ifdef ALIAS
  for (int64_t i = 0; i < w.n && !w.half; i++) ((float *)r->in[0])[i] = -((const float *)r->in[0])[i];
  for (int64_t i = 0; i < w.n && !w.half; i++) ((float *)r->in[0])[i] = -((const float *)r->in[0])[i];
#endif
#ifdef STATE
  static float first = NAN;
  static int64_t of = -1;
  if (w.n && of != w.n) first = load(&w, w.x, 0);
  of = w.n;
#endif
#ifdef EMPTY
  if (w.n == 0) store(&w, 0, 1);
#endif
#ifdef HANG
  while (w.n > 300) usleep(1000);
#endif
#ifdef SLOW /* right, but nobody wants it */
  usleep(20000);
#endif
#ifdef LEAVE
  if (w.n == 1) _exit(0);
#endif
  r->parallel(r->pool, (w.n + CHUNK - 1) / CHUNK, chunk, &w);
#ifdef STATE
  if (w.n) store(&w, 0, swish(first, w.beta, w.half) + shift_of(&w, 0));
#endif
  return HONE_OK;
}

/* ------------------------------------------------------------------ what it is */

static const hone_attr_desc attrs[] = {{"beta", HONE_ATTR_FLOAT, false, 0, 0}, {NULL, 0, false, 0, 0}};
static const hone_op_desc op = {HONE_DESC_HEAD(hone_op_desc),
                                .domain = "test",
                                .op_type = "Swish",
                                .since = 1,
                                .min_inputs = 1,
                                .max_inputs = 2,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) |
                                         HONE_TYPES(HONE_DTYPE_F16),
                                .attrs = attrs,
                                .infer = infer,
                                .cost = op_cost,
                                .reference = reference};
static const hone_tactic_desc tactic = {HONE_DESC_HEAD(hone_tactic_desc),
                                        .name = "swish_chunks",
                                        .device = "cpu",
                                        .anchor = "test.Swish",
                                        .version = 1,
                                        .accepts = accepts,
                                        .cost = cost,
                                        .need = need,
                                        .run = run};
static void with_one(const hone_match *m, const hone_attr_sink *sink) {
  (void)m;
  sink->set_float(sink->self, "beta", 1);
}
static const hone_pattern_desc pattern = {HONE_DESC_HEAD(hone_pattern_desc), .name = "test.Swish",
                                          .text = "%s = Sigmoid(%x)\n%y = Mul(%x, %s)", .inputs = "%x",
                                          .attrs = with_one};

static const hone_op_desc *const ops[] = {&op};
static const hone_tactic_desc *const tactics[] = {&tactic};
static const hone_pattern_desc *const patterns[] = {&pattern};
static const hone_plugin plugin = {HONE_DESC_HEAD(hone_plugin),
                                   .name = "mutant",
                                   .version = "1.0.0",
                                   .about = "x sigmoid(beta x) + shift",
                                   .n_ops = 1,
                                   .n_tactics = 1,
                                   .n_patterns = 1,
                                   .op = ops,
                                   .tactic = tactics,
                                   .pattern = patterns};

const hone_plugin *hone_plugin_entry(uint32_t abi) { return abi == HONE_PLUGIN_ABI ? &plugin : NULL; }
