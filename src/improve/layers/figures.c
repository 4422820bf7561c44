/* What is summed of a pair of values, and what it says. */
#include "base/dims.h"
#include "improve/layers/layers.h"

#include "base/error.h"
#include "model/ops/common/op.h"

#include <math.h>
#include <stdlib.h>

#define COARSE_RANGE 0.3   /* a smaller share of the codes between least and most: the scale is too large, */
#define COARSE_DB 45       /* where rounding to it is most of the error and leaves less than this */
#define COARSE_COUNT 1000  /* fewer values need not fill a range */
#define PEAK_OF_OUTLIERS 4 /* a larger one over the 99.9th percentile: outliers take the range */
#define IMBALANCE 16       /* of channels under one scale: the smallest keeps four bits of eight */
#define MOST_OF 0.5        /* of a layer's error */
#define RANK_SHARE 0.999

static const char *const names[] = {"healthy",    "saturated",  "coarse",     "outliers",
                                    "imbalanced", "arithmetic", "accumulated"};

const char *hone_layer_reason_name(hone_layer_reason reason) {
  return (unsigned)reason < HONE_LAYER_REASONS ? names[reason] : "";
}

double hn_layers_decoded(const hn_layers_scale *s, double code) { return (code - s->zero) * s->scale; }

double hn_layers_code(const hn_layers_scale *s, double value) {
  if (isnan(value)) return s->zero;
  return fmin(fmax(nearbyint(value / s->scale) + s->zero, s->low), s->high);
}

/* ---- sums */

static double value_of(const hn_layers_pair *p, const hone_tensor *got, int64_t i) {
  const double v = hn_get_f64(got, i);
  return hone_dtype_is_float(got->desc.dtype) ? v : hn_layers_decoded(&p->scale, v);
}

static void add(hn_layers_sums *s, double x, double y) {
  const double apart = fabs(y - x);
  s->signal += x * x;
  s->noise += apart * apart;
  s->both += x * y;
  s->other += y * y;
  if (!(apart <= s->most)) s->most = apart;
}

/* How far beyond the codes' ends; half a level rounds to them. */
static double beyond(const hn_layers_scale *s, double x) {
  const double low = hn_layers_decoded(s, s->low), high = hn_layers_decoded(s, s->high);
  return x < low - s->scale / 2 ? low - x : x > high + s->scale / 2 ? x - high : 0;
}

bool hn_layers_observe(hn_layers_pair *p, const hone_tensor *got) {
  const float *truth = p->truth->data;
  const int64_t n = hone_desc_count(&p->truth->desc);
  hn_quantize_observe(&p->seen, truth, n);
  for (int64_t i = 0; i < n; i++) {
    const double x = (double)truth[i], y = value_of(p, got, i);
    if (!isfinite(x)) continue;
    p->count++;
    p->sum += x;
    p->squares += x * x;
    add(&p->whole, x, y);
    if (!p->scale.known) continue;
    const int32_t code = (int32_t)hn_layers_code(&p->scale, y);
    p->used[code - p->scale.low] = true;
    p->ends += code == p->scale.low || code == p->scale.high;
    p->outside += beyond(&p->scale, x) > 0;
  }
  return true;
}

/* Channels lie along the second dimension of pictures and the like, else along the last. */
bool hn_layers_observe_own(hn_layers_pair *p, const hone_tensor *got) {
  const float *fresh = p->fresh->data;
  const hone_tensor_desc *d = &p->fresh->desc;
  const int32_t axis = d->rank > 3 ? 1 : d->rank - 1;
  const int64_t n = hone_desc_count(d), channels = axis < 0 ? 1 : d->dim[axis],
                inner = hn_dims(d, axis + 1, d->rank);
  if (!p->channel) {
    p->channels = channels;
    p->channel = hn_calloc((size_t)channels + 1, sizeof *p->channel);
    if (!p->channel) return false;
  }
  for (int64_t i = 0; i < n; i++) {
    const double x = (double)fresh[i], y = value_of(p, got, i);
    if (!isfinite(x)) continue;
    add(&p->own, x, y);
    if (channels == p->channels) add(&p->channel[i / inner % channels], x, y);
    if (!p->scale.known) continue;
    const double out = beyond(&p->scale, x);
    p->clipped_noise += out * out;
  }
  return true;
}

/* ---- figures */

static double decibels(const hn_layers_sums *s) {
  if (s->noise == 0) return INFINITY;
  return isfinite(s->noise) ? 10 * log10(s->signal / s->noise) : -INFINITY;
}

/* |x| below which this share of the values lies. */
static double percentile(const hn_quantize_histogram *h, double share) {
  uint64_t n = 0;
  for (int i = 0; i < HN_QUANTIZE_BINS / 2; i++) {
    n += h->bin[HN_QUANTIZE_BINS / 2 + i] + h->bin[HN_QUANTIZE_BINS / 2 - 1 - i];
    if ((double)n >= share * (double)h->count) return fabs(hn_quantize_edge(h, HN_QUANTIZE_BINS / 2 + i + 1));
  }
  return h->reach;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of the channels that are not zero throughout. */
static double median_channel(hn_arena *arena, const hn_layers_pair *p) {
  double *db = p->channel ? HN_NEW_ARRAY(arena, double, (size_t)p->channels + 1) : NULL;
  size_t n = 0;
  for (int64_t c = 0; db && c < p->channels; c++)
    if (p->channel[c].signal > 0) db[n++] = decibels(&p->channel[c]);
  if (!n) return INFINITY;
  qsort(db, n, sizeof *db, by_size);
  return db[n / 2];
}

static void spread(const hn_layers_pair *p, hone_layer_error *l) {
  const double n = (double)p->count, mean = n > 0 ? p->sum / n : 0;
  const double sigma = n > 0 ? sqrt(fmax(p->squares / n - mean * mean, 0)) : 0;
  const double most = fmax(fabs(p->seen.least), fabs(p->seen.most)), usual = percentile(&p->seen, RANK_SHARE);
  l->least = p->seen.least;
  l->most = p->seen.most;
  l->beyond_6_sigma = hn_quantize_outside(&p->seen, mean - 6 * sigma, mean + 6 * sigma);
  l->peak = usual > 0 ? fmax(most / usual, 1) : 1;
}

static void codes(const hn_layers_pair *p, hone_layer_error *l) {
  const double n = p->count ? (double)p->count : 1;
  l->codes = true;
  l->scale = p->scale.scale;
  l->zero_point = p->scale.zero;
  l->saturated = (double)p->outside / n;
  l->at_ends = (double)p->ends / n;
  l->codes_available = (uint32_t)(p->scale.high - p->scale.low + 1);
  for (int i = 0; i < 256; i++) l->codes_used += p->used[i];
  l->range_used =
      (hn_layers_code(&p->scale, l->most) - hn_layers_code(&p->scale, l->least) + 1) / l->codes_available;
}

/* ---- reasons */

/* Is rounding to this scale most of what the layer adds? */
static bool is_rounding(const hn_layers_pair *p) {
  const double rounding = (double)p->count * p->scale.scale * p->scale.scale / 12;
  return p->scale.known && rounding >= MOST_OF * p->own.noise;
}

static bool is_coarse(const hn_layers_pair *p, const hone_layer_error *l) {
  return is_rounding(p) && l->range_used < COARSE_RANGE && l->elements >= COARSE_COUNT &&
         l->own_snr_db < COARSE_DB;
}

static hone_layer_reason reason_of(const hn_layers_pair *p, const hone_layer_error *l) {
  if (p->scale.known && p->clipped_noise >= MOST_OF * p->own.noise) return HONE_LAYER_SATURATED;
  if (is_coarse(p, l)) return HONE_LAYER_COARSE;
  if (l->own_snr_db >= HONE_LAYERS_OWN_DB) return HONE_LAYER_IMBALANCED; /* channels alone are bad */
  if (is_rounding(p)) return l->peak > PEAK_OF_OUTLIERS ? HONE_LAYER_OUTLIERS : HONE_LAYER_COARSE;
  return l->one_scale && l->imbalance > IMBALANCE ? HONE_LAYER_IMBALANCED : HONE_LAYER_ARITHMETIC;
}

static bool is_bad(const hn_layers_pair *p, const hone_layer_error *l) {
  return l->own_snr_db < HONE_LAYERS_OWN_DB || l->channel_snr_db < HONE_LAYERS_CHANNEL_DB || is_coarse(p, l);
}

static const char *words(hn_arena *a, const hone_layer_error *l) {
  switch (l->reason) {
  case HONE_LAYER_SATURATED:
    return hn_arena_printf(a,
                           "%.3g %% of the values lie outside of its codes: scale %.3g is too small, or zero "
                           "point %d wrong; values reach %.3g .. %.3g",
                           100 * l->saturated, l->scale, l->zero_point, l->least, l->most);
  case HONE_LAYER_COARSE:
    return hn_arena_printf(a, "%.0f of %u codes cover its values, %.3g .. %.3g: scale %.3g is too large",
                           l->range_used * l->codes_available, l->codes_available, l->least, l->most,
                           l->scale);
  case HONE_LAYER_OUTLIERS:
    return hn_arena_printf(a,
                           "outliers take the range: the largest value is %.3g times the 99.9th percentile, "
                           "which leaves most values few codes",
                           l->peak);
  case HONE_LAYER_IMBALANCED:
    return hn_arena_printf(
        a,
        "one scale for weights of %u channels whose ranges differ by a factor of %.3g: a scale "
        "for each would keep the small ones",
        l->channels, l->imbalance);
  case HONE_LAYER_ARITHMETIC:
    return hn_arena_strdup(
        a, "its range fits: look at the codes and scales of its weights, at its bias, and (with "
           "hone verify of this model alone) at its kernel");
  case HONE_LAYER_ACCUMULATED:
    return hn_arena_strdup(a, "right by itself: errors of the layers before it have come together");
  default: return "";
  }
}

/* A single elementwise node says more than "Pointwise". */
static const char *op_of(const hn_layers_pair *p) {
  const hone_node *n = p->exact->producer;
  return !p->step ? "input" : p->step->desc.program && n ? n->op_type : p->step->desc.anchor;
}

static bool fill(hn_ly *q, const hn_layers_pair *p, hone_layer_error *l) {
  hn_layers_weights w;
  hn_layers_weights_of(q, p, &w);
  const hone_node *layer = hn_layers_layer_of(p->exact);
  *l = (hone_layer_error){.name = hn_arena_strdup(&q->arena, layer     ? layer->name
                                                             : p->step ? p->step->desc.name
                                                                       : p->name),
                          .op_type = hn_arena_strdup(&q->arena, layer ? layer->op_type : op_of(p)),
                          .value = hn_arena_strdup(&q->arena, p->name),
                          .quantized = hn_arena_strdup(&q->arena, p->quantized->name),
                          .depth = p->depth,
                          .by_place = p->by_place,
                          .elements = p->count,
                          .snr_db = decibels(&p->whole),
                          .cosine = p->whole.signal > 0 && p->whole.other > 0
                                        ? p->whole.both / sqrt(p->whole.signal * p->whole.other)
                                        : 1,
                          .max_error = p->whole.most,
                          .own_snr_db = decibels(&p->own),
                          .own_max_error = p->own.most,
                          .channel_snr_db = median_channel(&q->arena, p),
                          .channels = w.channels,
                          .one_scale = w.one_scale,
                          .imbalance = w.imbalance};
  spread(p, l);
  if (p->scale.known) codes(p, l);
  l->bad = is_bad(p, l);
  if (l->bad)
    l->reason = reason_of(p, l);
  else if (l->snr_db < HONE_LAYERS_ACCUMULATED_DB)
    l->reason = HONE_LAYER_ACCUMULATED;
  l->why = words(&q->arena, l);
  return l->name && l->op_type && l->value && l->quantized && l->why;
}

/* A layer that is bad by itself comes before any in which errors have only come together. */
static void name_them(hone_layers_report *r) {
  bool own = false;
  r->first = r->worst = -1;
  for (uint32_t i = 0; i < r->n_layers; i++) own |= r->layer[i].bad;
  for (uint32_t i = 0; i < r->n_layers; i++) {
    const hone_layer_error *l = &r->layer[i], *w = r->worst < 0 ? NULL : &r->layer[r->worst];
    if (own ? !l->bad : l->reason == HONE_LAYER_HEALTHY) continue;
    if (r->first < 0) r->first = (int32_t)i;
    if (!w || (own ? l->own_snr_db < w->own_snr_db : l->snr_db < w->snr_db)) r->worst = (int32_t)i;
  }
}

hone_status hn_layers_report(hn_ly *q, hone_layers_report *out, hone_error *error) {
  bool whole = (out->layer = HN_NEW_ARRAY(&q->arena, hone_layer_error, q->pairs.len + 1)) != NULL;
  for (size_t i = 0; whole && i < q->pairs.len; i++)
    if (q->pairs.ptr[i]->count) whole = fill(q, q->pairs.ptr[i], &out->layer[out->n_layers++]);
  if (!whole) return hn_fail_memory(error, 0, "a report");
  out->unmatched = q->unmatched;
  out->samples = q->samples;
  out->groups = q->groups;
  out->by_place = q->by_place;
  name_them(out);
  return HONE_OK;
}
