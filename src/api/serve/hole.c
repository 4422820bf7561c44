/* Caches to which new tokens are joined are as long for all sequences of a run: between what a sequence has
 * and what is new lies a hole, which the mask says not to look at. Models may ask the caches' length for more
 * than that, as for positions or windows, and then take no notice of what was meant. So plans are tried
 * before they serve, on numbers at random: with a hole the logits, and the keys and values of new tokens, are
 * what they are without one. Where a plan's caches have no hole for a shorter one's full ones, that is what
 * it is compared with; for the shortest, a plan without a hole is made for the while. */
#include "api/serve/slots.h"
#include "base/error.h"
#include "base/fault.h"
#include "model/ops/common/op.h"

#include <hone/device_memory.h>
#include <math.h>
#include <string.h>

enum { FEW = 3 }; /* rows of a cache without a hole */

typedef struct trial {
  hn_slots *s;
  uint64_t fed, real; /* rows that caches have, and tokens that are new */
  uint64_t tokens;    /* of the run */
} trial;

/* The row where a device writes what is new: behind those that there are, or, where a full cache has no room,
 * at the beginning (nothing is read there any more). */
static uint64_t place(const trial *k, uint64_t past) { return k->fed + k->tokens <= past ? k->fed : 0; }

/* What a run gives: logits of new tokens, and of each cache the rows of new tokens. */
typedef struct given {
  float *at;
  size_t n, logits; /* numbers; of these the first so many are logits */
  uint64_t real;    /* tokens */
} given;

/* ------------------------------------------------------------------ numbers at random */

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

static double between(uint64_t seed) { /* -1 and 1 */
  return (double)(mixed(seed + 0x51ed270b) >> 11) * 0x1p-52 - 1;
}

/* Rows of a cache are the same wherever they lie. */
static void fill_cache(const hone_tensor *t, uint64_t which, uint64_t rows) {
  const int64_t heads = t->desc.dim[1], room = t->desc.dim[2], size = t->desc.dim[3];
  for (int64_t h = 0; h < heads; h++)
    for (int64_t r = 0; r < (int64_t)rows; r++)
      for (int64_t i = 0; i < size; i++)
        hn_set_f64(t, (h * room + r) * size + i,
                   between((uint64_t)i + 4096 * ((uint64_t)r + 65536 * ((uint64_t)h + 512 * which))));
}

static void fill(const trial *k, const hn_decoder_input *in, uint64_t which, const hone_tensor *t,
                 uint64_t past) {
  const uint64_t n = (uint64_t)hone_desc_count(&t->desc);
  switch (in->role) {
  case HN_DECODER_CACHE: fill_cache(t, which, k->fed); break;
  case HN_DECODER_TOKENS:
    for (uint64_t i = 0; i < n && i < k->real; i++)
      hn_set_i64(t, (int64_t)i, (int64_t)(mixed(k->fed + i) % (uint64_t)k->s->vocabulary));
    break;
  case HN_DECODER_POSITIONS:
    for (uint64_t i = 0; i < n; i++) hn_set_i64(t, (int64_t)i, (int64_t)(k->fed + i));
    break;
  case HN_DECODER_FED:
    for (uint64_t i = 0; i < n; i++) hn_set_i64(t, (int64_t)i, (int64_t)place(k, past));
    break;
  case HN_DECODER_REAL:
    for (uint64_t i = 0; i < n; i++) hn_set_i64(t, (int64_t)i, i < k->real);
    break;
  case HN_DECODER_MASK:
    for (uint64_t i = 0; i < n; i++)
      hn_set_i64(t, (int64_t)i,
                 i < k->fed || (i >= past && i < past + k->real) ||
                     (!k->fed && HN_FAULT("generate_empty_hole_is_seen")));
    break;
  default: break;
  }
}

/* ------------------------------------------------------------------ a run */

static void take(given *g, const hone_tensor *t, int64_t from, int64_t count) {
  for (int64_t i = 0; i < count; i++) g->at[g->n++] = (float)hn_get_f64(t, from + i);
}

/* New rows of a cache: behind those that came, or on a device where it writes them. */
static hone_status take_rows(const trial *k, const hone_tensor *t, const hn_cache *c, uint64_t past, given *g,
                             hone_error *error) {
  const hn_slots *s = k->s;
  const size_t bytes = (size_t)hone_desc_bytes(&t->desc);
  hone_tensor here = {t->desc, s->apart ? hn_calloc(bytes + 1, 1) : t->data};
  hone_status status = here.data ? HONE_OK : hn_fail_memory(error, bytes, "a trial of a decoder");
  if (status == HONE_OK && s->apart) status = hone_memory_copy(s->engine, here.data, t->data, bytes, error);
  here.desc.device = 0;
  for (int64_t h = 0; h < c->heads && status == HONE_OK; h++)
    take(g, &here, (h * t->desc.dim[2] + (int64_t)(s->apart ? place(k, past) : past)) * c->size,
         (int64_t)k->real * c->size);
  if (s->apart) hn_free(here.data);
  return status;
}

static hone_status take_all(const trial *k, const hone_context *context, uint64_t past, given *g,
                            hone_error *error) {
  const hn_slots *s = k->s;
  const hone_tensor *l = hone_context_output(context, s->d->logits);
  const int64_t rows = l->desc.rank == 3 ? l->desc.dim[1] : 1, real = (int64_t)k->real;
  hone_status status = HONE_OK;
  take(g, l, 0, (rows < real ? rows : real) * s->row);
  g->logits = g->n, g->real = k->real;
  for (uint32_t i = 0; i < s->n_caches && status == HONE_OK; i++)
    status = take_rows(k, hone_context_output(context, s->cache[i].out), &s->cache[i], past, g, error);
  return status;
}

/* On a device caches lie in its memory: where the slots are. */
static hone_status lend(const trial *k, hone_context *context, const hone_tensor *in,
                        const hone_tensor **list, hone_error *error) {
  const hn_slots *s = k->s;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_caches && status == HONE_OK; i++) {
    const hn_cache *c = &s->cache[i];
    hone_tensor there = {in[c->in].desc, c->data};
    there.desc.device = 1;
    status =
        hone_memory_copy(s->engine, c->data, in[c->in].data, (size_t)hone_desc_bytes(&there.desc), error);
    if (status == HONE_OK) status = hone_context_bind_input(context, c->in, &there, error);
    if (status == HONE_OK) status = hone_context_bind_output(context, c->out, &there, error);
    list[c->in] = NULL;
  }
  return status;
}

static hone_status run(const trial *k, const hone_plan *plan, hone_context *context, uint64_t past, given *g,
                       hone_error *error) {
  const hn_slots *s = k->s;
  hone_tensor *in = hn_calloc(s->d->n_in + 1, sizeof *in);
  const hone_tensor **list = hn_calloc(s->d->n_in + 1, sizeof *list);
  size_t most = k->real * (size_t)s->row;
  hone_status status = in && list ? HONE_OK : hn_fail_memory(error, sizeof *in, "a trial of a decoder");
  for (uint32_t i = 0; i < s->n_caches; i++) most += (size_t)(s->cache[i].heads * s->cache[i].size) * k->real;
  g->at = status == HONE_OK ? hn_calloc(most + 1, sizeof *g->at) : NULL;
  if (!g->at) status = hn_fail_memory(error, most * sizeof *g->at, "a trial of a decoder");
  for (uint32_t i = 0; i < s->d->n_in && status == HONE_OK; i++) {
    in[i].desc = *hone_plan_input_desc(plan, i);
    const int64_t bytes = hone_desc_bytes(&in[i].desc);
    in[i].data = hn_calloc((size_t)bytes + 1, 1);
    if (!in[i].data) status = hn_fail_memory(error, (size_t)bytes, "a trial of a decoder");
    if (status == HONE_OK) fill(k, &s->d->in[i], i, &in[i], past);
    list[i] = &in[i];
  }
  if (status == HONE_OK) status = hone_context_bind_outputs(context, NULL, error);
  if (status == HONE_OK && s->apart) status = lend(k, context, in, list, error);
  if (status == HONE_OK) status = hone_context_run(context, list, NULL, error);
  if (status == HONE_OK) status = take_all(k, context, past, g, error);
  for (uint32_t i = 0; in && i < s->d->n_in; i++) hn_free(in[i].data);
  hn_free(in);
  hn_free((void *)list);
  return status;
}

/* The same on a plan that is made for it: caches of `past` rows. */
static hone_status run_anew(const trial *k, uint64_t tokens, uint64_t past, given *g, hone_error *error) {
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_status status = hn_sizes_plan(k->s, 1, (int64_t)tokens, (int64_t)past, &plan, error);
  if (status == HONE_OK) status = hone_context_create(plan, &context, error);
  if (status == HONE_OK) status = run(k, plan, context, past, g, error);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  return status;
}

/* ------------------------------------------------------------------ comparisons */

/* How far a part of the numbers is from what it should be, against the largest of them. */
static double apart(const float *a, const float *b, size_t n) {
  double most = 0, far = 0;
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
    most = fmax(most, fabs((double)b[i])), far = fmax(far, fabs((double)a[i] - (double)b[i]));
  }
  return far > 0 ? far / most : 0;
}

/* What rounding may come to: sums are of other lengths, and in another order. */
static double allowed(const hn_slots *s) {
  double eps = strcmp(hone_plan_precision(s->size.ptr[0].plan), "f32") == 0 ? 0x1p-24 : 0x1p-9;
  for (uint32_t i = 0; i < s->n_caches; i++)
    eps = fmax(eps, s->cache[i].dtype == HONE_DTYPE_BF16  ? 0x1p-9
                    : s->cache[i].dtype == HONE_DTYPE_F16 ? 0x1p-12
                                                          : 0);
  return eps < 0x1p-20 ? 0x1p-12 : eps < 0x1p-10 ? 0x1p-7 : 0x1p-5;
}

/* All of `is`, against the first tokens of `should`. */
static bool alike(const hn_slots *s, const given *is, const given *should, double *far) {
  const float *a = is->at + is->logits, *b = should->at + should->logits;
  if (is->logits > should->logits) return false;
  *far = apart(is->at, should->at, is->logits);
  for (uint32_t i = 0; i < s->n_caches; i++)
    for (int64_t h = 0; h < s->cache[i].heads; h++) {
      const size_t size = (size_t)s->cache[i].size;
      *far = fmax(*far, apart(a, b, is->real * size));
      a += is->real * size, b += should->real * size;
    }
  return *far <= allowed(s);
}

/* Does plan z give what it should, of `fed` rows and so many tokens? Otherwise why says what is wrong. Errors
 * are those of memory. */
static hone_status compare(hn_slots *s, const hn_run_size *z, uint32_t fed, uint32_t real,
                           const given *should, bool *holds, hone_error *why) {
  const trial k = {.s = s, .fed = fed, .real = real, .tokens = z->tokens};
  given is = {0};
  double far = 0;
  hone_status status = run(&k, z->plan, z->context, z->past, &is, why);
  *holds = status == HONE_OK && alike(s, &is, should, &far);
  if (status == HONE_OK && !*holds)
    hn_fail(why, HONE_ERROR_UNSUPPORTED,
            "with a hole between %u tokens and new ones the numbers are others, by %.2g of the largest: "
            "attention_mask and position_ids do not say all",
            fed, far);
  hn_free(is.at);
  return status == HONE_ERROR_MEMORY ? status : HONE_OK; /* or it does not take what it may be given */
}

/* One token, with caches that are empty (which models need not take without any rows; a device's have one,
 * for the token), and as long as others of their plans. */
static hone_status check_one(hn_slots *s, const hn_run_size *z, bool *holds, hone_error *why) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i <= s->n_pasts && *holds && status == HONE_OK; i++) {
    const uint32_t fed = i ? s->past[i - 1] : 0;
    const trial k = {.s = s, .fed = fed, .real = 1, .tokens = 1};
    const hn_run_size *by = i ? hn_sizes_find(s, 1, 1, fed) : NULL;
    given should = {0};
    if (fed >= z->past) break;
    status = by ? run(&k, by->plan, by->context, fed, &should, why) : run_anew(&k, 1, s->apart, &should, why);
    if (status == HONE_OK)
      status = compare(s, z, fed, 1, &should, holds, why);
    else if (status != HONE_ERROR_MEMORY && !by && !s->apart)
      status = HONE_OK;
    hn_free(should.at);
  }
  return status;
}

/* A device writes what is new into the cache that comes, which is to have room for it. */
static uint32_t few_rows(const hn_slots *s, uint32_t tokens) {
  const uint32_t few = s->apart && tokens > FEW ? tokens : FEW;
  return few < s->past[0] ? few : s->past[0];
}

static hone_status check_size(hn_slots *s, const hn_run_size *z, given *should, bool *holds,
                              hone_error *why) {
  const uint32_t t = z->tokens, few = few_rows(s, t);
  const bool tail = s->pads && t > 2;
  hone_status status = HONE_OK;
  if (!should->at) status = run_anew(&(trial){s, few, t, t}, t, few, should, why);
  if (status != HONE_OK && status != HONE_ERROR_MEMORY) { /* nothing to compare with */
    *holds = false;
    return HONE_OK;
  }
  if (status == HONE_OK) status = compare(s, z, few, tail ? t - t / 4 : t, should, holds, why);
  if (status == HONE_OK && !*holds && tail) {
    status = compare(s, z, few, t, should, holds, why);
    if (*holds) s->pads = false;
  }
  return status == HONE_OK && *holds && t == 1 ? check_one(s, z, holds, why) : status;
}

/* Of several sequences it is proved that they are as one. */
hone_status hn_hole_check(hn_slots *s, hone_error *error) {
  given should = {0}; /* of as many tokens: plans of as many follow each other */
  uint32_t tokens = 0;
  hone_error own = {0};
  hone_status status = HONE_OK;
  for (size_t i = 0; i < s->size.len && status == HONE_OK;) {
    hn_run_size *z = &s->size.ptr[i];
    bool holds = true;
    if (z->tokens != tokens) {
      hn_free(should.at);
      should = (given){0}, tokens = z->tokens;
    }
    if (z->batch == 1) status = check_size(s, z, &should, &holds, &own);
    if (status == HONE_OK && !holds && z->tokens == 1) status = HONE_ERROR_UNSUPPORTED;
    if (status == HONE_OK && !holds)
      hn_sizes_drop(s, i);
    else
      i++;
  }
  hn_free(should.at);
  if (status == HONE_OK || status == HONE_ERROR_MEMORY) {
    if (status != HONE_OK && error) *error = own;
    return status;
  }
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "%.180s", own.what); /* whatever it was that it does not take */
  return HONE_ERROR_UNSUPPORTED;
}
