#include "api/lines.h"

#include "api/api.h"
#include "base/error.h"
#include "optimize/plan/line.h"

#include <pthread.h>
#include <string.h>

enum {
  SIZES = 512,  /* dimensions of all inputs together, at most */
  SEEN = 4,     /* plans that are remembered */
  LINES = 6,    /* lines that are kept */
  ATTEMPTS = 3, /* far ends that are tried at once */
  LEAST = 32    /* steps to a far end, at least */
};

/* Times as long as with its own tactics that a plan may be predicted to take at the end of a line. */
#define MOST_EXCESS 1.15

/* A plan that was made from nothing. */
typedef struct seen_plan {
  uint32_t n;
  int64_t *size; /* NULL: none */
  hn_sample *sample;
} seen_plan;

typedef struct lined_line {
  hn_line *line; /* NULL: none */
  uint32_t n;
  int64_t *origin, *step; /* sizes at 0, and what they grow by */
  int64_t bad, bad_below; /* plans from there on are others; 0: not known */
  uint32_t plans;         /* on it */
  uint64_t stamp;         /* of the last use */
} lined_line;

struct hn_lines {
  pthread_mutex_t lock;
  uint32_t refs; /* who made it, and plans */
  seen_plan seen[SEEN];
  uint32_t at;
  lined_line line[LINES];
  uint64_t made;                   /* lines, and 1 */
  uint64_t clock, noted, patience; /* plans noted; how many are to be before a line is looked for again */
  uint32_t failed;                 /* searches since the last that found one */
  hn_lines_counts counts;
};

struct hn_lined {
  hn_lines *lines;
  hn_packed_store *store;
  hone_plan_options options; /* without bindings */
  char precision[16];
  uint32_t n;
  int64_t *size;    /* of its inputs, when it was made */
  lined_line *line; /* that it is on, or NULL */
  uint64_t tried;   /* lines that there were when it was on none of them */
};

/* ------------------------------------------------------------------ they come and go */

hn_lines *hn_lines_create(void) {
  hn_lines *l = hn_calloc(1, sizeof *l);
  if (!l) return NULL;
  pthread_mutex_init(&l->lock, NULL);
  l->refs = l->made = 1;
  return l;
}

static void empty_seen(seen_plan *s) {
  hn_free(s->size);
  hn_sample_free(s->sample);
  *s = (seen_plan){0};
}

static void empty_line(lined_line *l) {
  hn_line_free(l->line);
  hn_free(l->origin);
  hn_free(l->step);
  *l = (lined_line){0};
}

/* With the lock, which is given back. */
static void drop(hn_lines *l) {
  const bool last = --l->refs == 0;
  pthread_mutex_unlock(&l->lock);
  if (!last) return;
  for (uint32_t i = 0; i < SEEN; i++) empty_seen(&l->seen[i]);
  for (uint32_t i = 0; i < LINES; i++) empty_line(&l->line[i]);
  pthread_mutex_destroy(&l->lock);
  hn_free(l);
}

void hn_lines_drop(hn_lines *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  drop(l);
}

void hn_lines_count(hn_lines *l, hn_lines_counts *out) {
  pthread_mutex_lock(&l->lock);
  *out = l->counts;
  for (uint32_t i = 0; i < LINES; i++) out->lines += l->line[i].line != NULL;
  pthread_mutex_unlock(&l->lock);
}

void hn_lined_free(hn_lined *d) {
  if (!d) return;
  pthread_mutex_lock(&d->lines->lock);
  if (d->line) d->line->plans--;
  drop(d->lines);
  hn_packed_store_drop(d->store);
  hn_free(d->size);
  hn_free(d);
}

/* ------------------------------------------------------------------ sizes */

/* Descriptors of the plan's inputs that its caller sees. */
static uint32_t outer_descs(hone_plan *p, hone_tensor_desc *out[SIZES]) {
  hone_bound_shape *bound = hn_api_plan_bound(p);
  const uint32_t n = hone_plan_inputs(p);
  for (uint32_t i = 0; i < n && i < SIZES; i++) out[i] = &bound[i].desc;
  return n;
}

static bool sizes_of(const hone_plan *p, int64_t out[SIZES], uint32_t *n) {
  *n = 0;
  for (uint32_t i = 0; i < hone_plan_inputs(p); i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(p, i);
    if (d->rank < 0 || d->rank > SIZES - (int32_t)*n) return false;
    for (int32_t k = 0; k < d->rank; k++)
      if ((out[(*n)++] = d->dim[k]) < 0) return false;
  }
  return true;
}

/* What the bindings make of the inputs' sizes; false: they leave some open, or are wrong. */
static bool sizes_wanted(const hone_plan *p, const hone_binding *b, uint32_t n_bindings, int64_t out[SIZES],
                         uint32_t *n) {
  const hn_model *m = hn_api_plan_source(p);
  *n = 0;
  for (size_t i = 0; i < m->graph->inputs.len; i++) {
    const hn_value *v = m->graph->inputs.ptr[i];
    if (v->constant) continue;
    const hone_binding *own = NULL;
    for (uint32_t k = 0; k < n_bindings; k++)
      if (b[k].input && !b[k].symbol && strcmp(b[k].input, v->name) == 0) own = &b[k];
    const int32_t rank = own ? own->rank : v->desc.rank;
    if (rank < 0 || rank > SIZES - (int32_t)*n || (v->desc.rank >= 0 && rank != v->desc.rank)) return false;
    for (int32_t k = 0; k < rank; k++) {
      const int64_t have = v->desc.rank < 0 ? HONE_DIM_UNKNOWN : v->desc.dim[k];
      const char *symbol = have <= -2 ? hn_model_symbol_name(m, have) : NULL;
      int64_t dim = have >= 0 ? have : own ? own->dim[k] : -1;
      for (uint32_t j = 0; j < n_bindings && !own && symbol; j++)
        if (b[j].symbol && strcmp(b[j].symbol, symbol) == 0) dim = b[j].dim[0];
      if (dim < 0 || dim > INT32_MAX || (own && own->dim[k] != dim)) return false;
      out[(*n)++] = dim;
    }
  }
  return true;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The smallest step from a towards b, upwards in its first dimension that moves; false: they are the same. */
static bool step_between(const int64_t *a, const int64_t *b, uint32_t n, int64_t *out) {
  int64_t divisor = 0;
  for (uint32_t i = 0; i < n; i++) divisor = common_divisor(divisor, b[i] - a[i]);
  if (!divisor) return false;
  for (uint32_t i = 0; i < n; i++)
    if (b[i] != a[i]) {
      if (b[i] < a[i]) divisor = -divisor;
      break;
    }
  for (uint32_t i = 0; i < n; i++) out[i] = (b[i] - a[i]) / divisor;
  return true;
}

/* How many steps from the origin; false: they are not on the line. */
static bool place_of(const int64_t *origin, const int64_t *step, const int64_t *size, uint32_t n,
                     int64_t *t) {
  bool known = false;
  *t = 0;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t away = size[i] - origin[i];
    if (!step[i]) {
      if (away) return false;
      continue;
    }
    if (away % step[i] || (known && away / step[i] != *t)) return false;
    *t = away / step[i];
    known = true;
  }
  return known;
}

/* Steps after which the dimension that is the largest number of them long is twice as long. */
static int64_t doubling(const int64_t *origin, const int64_t *step, uint32_t n, int64_t t) {
  int64_t most = LEAST;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t steps = step[i] > 0 ? (origin[i] + t * step[i]) / step[i] : 0;
    most = steps > most ? steps : most;
  }
  return most;
}

/* ------------------------------------------------------------------ plans to look at */

/* The numbers of a plan for the sizes at t, with the steps of p; NULL: there is none, or it would be much
 * slower than one with steps of its own. */
static hn_sample *look_at(hn_lines *l, hone_plan *p, const int64_t *origin, const int64_t *step, int64_t t) {
  const hn_lined *d = *hn_api_plan_lined(p);
  const uint32_t n_in = hone_plan_inputs(p);
  hone_binding *b = hn_calloc(n_in + 1, sizeof *b);
  hone_plan *other = NULL;
  hn_sample *sample = NULL;
  bool good = b != NULL;
  for (uint32_t i = 0, k = 0; i < n_in && good; i++) {
    b[i].input = hone_plan_input_name(p, i);
    b[i].rank = hone_plan_input_desc(p, i)->rank;
    for (int32_t j = 0; j < b[i].rank && good; j++, k++) {
      b[i].dim[j] = origin[k] + t * step[k];
      good = b[i].dim[j] >= 0;
    }
  }
  hone_plan_options o = d->options;
  o.precision = d->precision[0] ? d->precision : NULL;
  o.bindings = b, o.n_bindings = n_in;
  l->counts.looked += good;
  if (good && hn_api_plan_like(p, &o, d->store, &other, NULL) == HONE_OK &&
      hn_plan_excess(hn_api_plan(other)) < MOST_EXCESS) {
    hone_tensor_desc *more[SIZES];
    const uint32_t n = outer_descs(other, more);
    sample = hn_sample_take(hn_api_plan_inside(other), more, n);
  }
  hone_plan_destroy(other);
  hn_free(b);
  return sample;
}

/* ------------------------------------------------------------------ lines */

/* A place for a line; NULL: all have plans. */
static lined_line *vacancy(hn_lines *l) {
  lined_line *best = NULL;
  for (uint32_t i = 0; i < LINES; i++) {
    if (!l->line[i].line) return &l->line[i];
    if (!l->line[i].plans && (!best || l->line[i].stamp < best->stamp)) best = &l->line[i];
  }
  if (best) empty_line(best);
  return best;
}

static void order(const hn_sample *sample[3], int64_t at[3]) {
  for (int i = 1; i < 3; i++)
    for (int k = i; k > 0 && at[k] < at[k - 1]; k--) {
      const int64_t t = at[k];
      const hn_sample *s = sample[k];
      at[k] = at[k - 1], sample[k] = sample[k - 1];
      at[k - 1] = t, sample[k - 1] = s;
    }
}

/* The line through a plan (at 0), another (at tb) and a third that is looked at. */
static hn_line *line_through(hn_lines *l, hone_plan *p, const seen_plan *a, const seen_plan *b,
                             const int64_t *step, int64_t tb, int64_t tw) {
  int64_t top = tb > tw ? tb : tw;
  if (top < 0) top = 0;
  int64_t far = top + doubling(a->size, step, a->n, top);
  hn_line *line = NULL;
  /* The other may have other tactics: then it is looked at with those of the plan. */
  hn_sample *own = hn_sample_alike(a->sample, b->sample) ? NULL : look_at(l, p, a->size, step, tb);
  const hn_sample *second = own ? own : b->sample;
  for (int tries = 0; tries < ATTEMPTS && !line && hn_sample_alike(a->sample, second);
       tries++, far = top + (far - top) / 4) {
    while (common_divisor(tb, far) != 1) far++;
    hn_sample *c = look_at(l, p, a->size, step, far);
    const hn_sample *sample[3] = {a->sample, second, c};
    int64_t at[3] = {0, tb, far};
    order(sample, at);
    const bool alike = c && hn_sample_alike(a->sample, c);
    if (alike) line = hn_line_make(sample, at, NULL);
    hn_sample_free(c);
    if (alike || far - top < 8) break; /* what does not grow evenly does not nearer, either */
  }
  hn_sample_free(own);
  return line;
}

static const seen_plan *seen_at(const hn_lines *l, const int64_t *size, uint32_t n) {
  for (uint32_t i = 0; i < SEEN; i++)
    if (l->seen[i].sample && l->seen[i].n == n && memcmp(l->seen[i].size, size, n * sizeof *size) == 0)
      return &l->seen[i];
  return NULL;
}

/* Looks for a line with this plan, the wanted sizes and another plan. */
static bool find_line(hn_lines *l, hone_plan *p, const int64_t *wanted) {
  const hn_lined *d = *hn_api_plan_lined(p);
  const seen_plan *a = seen_at(l, d->size, d->n);
  int64_t step[SIZES], tb = 0, tw = 0;
  if (!a || l->noted < l->patience || !step_between(a->size, wanted, a->n, step) ||
      !place_of(a->size, step, wanted, a->n, &tw))
    return false;
  const seen_plan *b = NULL;
  for (uint32_t i = 0; i < SEEN; i++) { /* the latest, of its form where there is one */
    const seen_plan *s = &l->seen[(l->at + SEEN - 1 - i) % SEEN];
    int64_t t;
    if (s == a || !s->sample || s->n != a->n || !place_of(a->size, step, s->size, a->n, &t)) continue;
    if (b && (hn_sample_alike(a->sample, b->sample) || !hn_sample_alike(a->sample, s->sample))) continue;
    b = s, tb = t;
  }
  if (!b) return false;
  /* Sizes that are all multiples of something are taken as such. */
  const int64_t unit = common_divisor(tb, tw);
  for (uint32_t i = 0; i < a->n; i++) step[i] *= unit;
  tb /= unit, tw /= unit;
  lined_line *place = vacancy(l);
  if (!place) return false;
  hn_line *line = line_through(l, p, a, b, step, tb, tw);
  place->origin = line ? hn_malloc(a->n * sizeof *step + 1) : NULL;
  place->step = line ? hn_malloc(a->n * sizeof *step + 1) : NULL;
  if (!place->origin || !place->step) {
    hn_line_free(line);
    empty_line(place);
    l->patience = l->noted + ((uint64_t)2 << (l->failed < 10 ? l->failed : 10));
    l->failed++;
    return false;
  }
  place->line = line;
  place->n = a->n;
  memcpy(place->origin, a->size, a->n * sizeof *step);
  memcpy(place->step, step, a->n * sizeof *step);
  l->failed = 0;
  l->made++;
  return true;
}

/* Steps down from t to where a dimension that grows would be smaller than 2. */
static int64_t room_below(const lined_line *k, int64_t t) {
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < k->n; i++) {
    const int64_t steps = k->step[i] > 0 ? (k->origin[i] + t * k->step[i] - 2) / k->step[i] : least;
    least = steps < least ? steps : least;
  }
  return least > 0 && least < INT64_MAX ? least : 0;
}

/* Makes the line, which ends before t, go on to there and further. What was tried in vain is not tried again.
 */
static bool reach(hn_lines *l, hone_plan *p, lined_line *k, int64_t t) {
  const bool down = t < hn_line_low(k->line);
  const int64_t below = down ? room_below(k, t) : 0;
  int64_t *bad = down ? &k->bad_below : &k->bad, far = t + doubling(k->origin, k->step, k->n, t);
  if (down) far = t - (below > LEAST ? below / 2 : below);
  for (int tries = 0; tries < ATTEMPTS; tries++) {
    if (*bad && (down ? far <= *bad : far >= *bad)) far = t + (*bad - t) / 2;
    if (*bad && (down ? t <= *bad : t >= *bad)) return false;
    if (*bad && !down && *bad - t < LEAST / 2) return false;
    hn_sample *s = look_at(l, p, k->origin, k->step, far);
    const bool good = s && hn_line_extend(k->line, s, far);
    hn_sample_free(s);
    if (good) return true;
    *bad = far;
  }
  return false;
}

/* Puts the plan on a line with its sizes and the wanted ones. *there: such a line goes as far as to these,
 * whether the plan fits it or not. */
static bool join(hn_lines *l, hone_plan *p, const int64_t *wanted, bool *there) {
  hn_lined *d = *hn_api_plan_lined(p);
  hone_tensor_desc *more[SIZES];
  const uint32_t n_more = outer_descs(p, more);
  *there = false;
  for (uint32_t i = 0; i < LINES; i++) {
    lined_line *k = &l->line[i];
    int64_t from, to;
    if (!k->line || k->n != d->n || !place_of(k->origin, k->step, wanted, d->n, &to)) continue;
    *there |= to >= hn_line_low(k->line) && to <= hn_line_high(k->line);
    if (d->tried == l->made || !place_of(k->origin, k->step, d->size, d->n, &from) ||
        from < hn_line_low(k->line) || from > hn_line_high(k->line) ||
        !hn_plan_attach(hn_api_plan_inside(p), more, n_more, k->line, from))
      continue;
    d->line = k;
    k->plans++;
    return true;
  }
  d->tried = l->made;
  return false;
}

hone_status hn_lines_move(hone_plan *p, const hone_binding *bindings, uint32_t n_bindings, bool *done,
                          hone_error *error) {
  hn_lined *d = *hn_api_plan_lined(p);
  hn_lines *l = d->lines;
  int64_t wanted[SIZES], to = 0;
  uint32_t n = 0;
  bool there;
  hone_status status = HONE_OK;
  if (!sizes_wanted(p, bindings, n_bindings, wanted, &n) || n != d->n) return HONE_OK;
  pthread_mutex_lock(&l->lock);
  if (!d->line && !join(l, p, wanted, &there) &&
      (there || !find_line(l, p, wanted) || !join(l, p, wanted, &there)))
    goto done;
  lined_line *k = d->line;
  if (!place_of(k->origin, k->step, wanted, n, &to)) goto done;
  k->stamp = ++l->clock;
  if ((to > hn_line_high(k->line) || to < hn_line_low(k->line)) && !reach(l, p, k, to)) goto done;
  status = hn_plan_move(hn_api_plan_inside(p), k->line, to, done, error);
  l->counts.moved += *done;
done:
  pthread_mutex_unlock(&l->lock);
  return status;
}

/* ------------------------------------------------------------------ plans that are made */

/* Only what hn_lined can say again: a plan to look at is made in the same way. */
static bool plain(const hone_plan_options *o) {
  return !(o->passes && *o->passes) && !o->n_f32_nodes && !o->reference && !o->separate && !o->preview &&
         o->slices <= 1 && (!o->precision || strlen(o->precision) < sizeof((hn_lined *)0)->precision);
}

void hn_lines_note(hn_lines *l, hone_plan *p, const hone_plan_options *o, hn_packed_store *store) {
  hone_tensor_desc *more[SIZES];
  int64_t size[SIZES];
  uint32_t n;
  if (!store || !plain(o) || hone_plan_inputs(p) > SIZES || !sizes_of(p, size, &n) || !n) return;
  hn_sample *s = hn_sample_take(hn_api_plan_inside(p), more, outer_descs(p, more));
  hn_lined *d = s ? hn_calloc(1, sizeof *d) : NULL;
  int64_t *own = d ? hn_malloc(n * sizeof *own) : NULL, *kept = own ? hn_malloc(n * sizeof *kept) : NULL;
  if (!kept) {
    hn_sample_free(s);
    hn_free(own);
    hn_free(d);
    return;
  }
  memcpy(own, size, n * sizeof *own);
  memcpy(kept, size, n * sizeof *kept);
  d->lines = l;
  d->store = hn_packed_store_retain(store);
  d->options = *o;
  d->options.precision = NULL, d->options.bindings = NULL, d->options.f32_nodes = NULL,
  d->options.passes = NULL;
  d->options.n_bindings = 0, d->options.weights = NULL;
  if (o->precision) memcpy(d->precision, o->precision, strlen(o->precision) + 1);
  d->n = n;
  d->size = own;
  pthread_mutex_lock(&l->lock);
  l->refs++;
  l->noted++;
  for (uint32_t i = 0; i < LINES; i++) {
    int64_t t;
    lined_line *k = &l->line[i];
    if (k->line && k->n == n && place_of(k->origin, k->step, size, n, &t))
      (void)hn_line_extend(k->line, s, t);
  }
  seen_plan *place = (seen_plan *)(uintptr_t)seen_at(l, size, n);
  if (!place) {
    place = &l->seen[l->at];
    l->at = (l->at + 1) % SEEN;
  }
  empty_seen(place);
  *place = (seen_plan){n, kept, s};
  pthread_mutex_unlock(&l->lock);
  *hn_api_plan_lined(p) = d;
}
