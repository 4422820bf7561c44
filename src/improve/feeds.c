#include "improve/feeds.h"

#include "base/error.h"
#include "base/rng.h"
#include "model/ops/common/op.h"
#include "runtime/data/data.h"

#include <float.h>
#include <math.h>
#include <string.h>

const char *hn_edge_name(hn_edge edge) {
  static const char *const names[HN_EDGE_KINDS] = {"random values",
                                                   "zeros",
                                                   "ones",
                                                   "the largest value",
                                                   "the lowest value",
                                                   "the largest and lowest values",
                                                   "zeros of both signs",
                                                   "values eight times as large",
                                                   "denormal values"};
  return edge < HN_EDGE_KINDS ? names[edge] : "";
}

bool hn_edge_is_extreme(hn_edge edge) {
  return edge == HN_EDGE_LARGEST || edge == HN_EDGE_LOWEST || edge == HN_EDGE_EXTREMES;
}

static bool takes(hn_edge edge, hone_dtype dtype) {
  switch (edge) {
  case HN_EDGE_ZEROS:
  case HN_EDGE_ONES: return !hn_dtype_points(dtype);
  case HN_EDGE_LARGEST:
  case HN_EDGE_LOWEST:
  case HN_EDGE_EXTREMES: return !hn_dtype_points(dtype) && dtype != HONE_DTYPE_BOOL;
  case HN_EDGE_SIGNED_ZEROS:
  case HN_EDGE_TIMES_8:
  case HN_EDGE_DENORMALS: return dtype == HONE_DTYPE_F32;
  default: return false;
  }
}

static bool takes_input(const hn_plan *p, const hn_feed_case *c, uint32_t i) {
  return (c->only < 0 || c->only == (int32_t)i) && takes(c->edge, p->inputs[i]->desc.dtype);
}

bool hn_feeds_differ(const hn_plan *p, const hn_feed_case *c) {
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (takes_input(p, c, i)) return true;
  return false;
}

/* A byte's values are those of random inputs, and indices of rows stay inside their table. */
static bool is_boundless(const hone_model *model, uint32_t i, hone_dtype dtype) {
  return hone_dtype_is_float(dtype) || (hone_dtype_size(dtype) > 1 && hone_model_input_bound(model, i) <= 0);
}

bool hn_feeds_extreme(const hn_plan *p, const hone_model *model, const hn_feed_case *c) {
  if (!hn_edge_is_extreme(c->edge)) return false;
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (takes_input(p, c, i) && is_boundless(model, i, p->inputs[i]->desc.dtype)) return true;
  return false;
}

/* ---- values */

static double largest_float(hone_dtype dtype) {
  switch (dtype) {
  case HONE_DTYPE_F16: return 65504;
  case HONE_DTYPE_BF16: return 0x1.fep127;
  case HONE_DTYPE_F64: return DBL_MAX;
  default: return FLT_MAX;
  }
}

/* All-ones of the type's width, with the sign bit as the type wants it. */
static int64_t largest_integer(hone_dtype dtype, bool lowest) {
  const bool is_signed =
      dtype == HONE_DTYPE_I8 || dtype == HONE_DTYPE_I16 || dtype == HONE_DTYPE_I32 || dtype == HONE_DTYPE_I64;
  const unsigned bits = 8 * (unsigned)hone_dtype_size(dtype);
  if (!is_signed) return lowest ? 0 : bits >= 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1);
  const int64_t most = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
  return lowest ? -most - 1 : most;
}

/* Indices of rows stay inside their table. */
static int64_t integer(hn_edge edge, hone_dtype dtype, int64_t below, double largest, bool lowest) {
  if (edge == HN_EDGE_ZEROS) return 0;
  if (edge == HN_EDGE_ONES) return below == 1 ? 0 : 1;
  if (below > 0) return lowest ? 0 : below - 1;
  const int64_t v = largest_integer(dtype, lowest);
  if (largest <= 0 || hone_dtype_size(dtype) == 1) return v;
  /* -1 is the largest of u64. */
  const bool inside = v != -1 && fabs((double)v) <= largest;
  return inside ? v : lowest ? -(int64_t)largest : (int64_t)largest;
}

static void put_integers(hone_tensor *t, hn_edge edge, int64_t below, double largest, hn_rng *r) {
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    const bool lowest = edge == HN_EDGE_LOWEST || (edge == HN_EDGE_EXTREMES && hn_rng_below(r, 2));
    hn_set_i64(t, i, integer(edge, t->desc.dtype, below, largest, lowest));
  }
}

static void put_floats(hone_tensor *t, hn_edge edge, double largest, hn_rng *r) {
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    double v = edge == HN_EDGE_ZEROS ? 0 : edge == HN_EDGE_ONES ? 1 : largest;
    if (edge == HN_EDGE_LOWEST || (edge == HN_EDGE_EXTREMES && hn_rng_below(r, 2))) v = -v;
    hn_set_f64(t, i, v);
  }
}

/* Random values with some that kernels like to get wrong. */
static void put_among_random(hone_tensor *t, hn_edge edge, hn_rng *r) {
  float *v = t->data;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    const uint64_t dice = hn_rng_below(r, 8);
    if (edge == HN_EDGE_SIGNED_ZEROS) v[i] = dice < 2 ? 0.0f : dice < 4 ? -0.0f : v[i];
    if (edge == HN_EDGE_TIMES_8) v[i] *= 8;
    if (edge == HN_EDGE_DENORMALS) v[i] = dice < 2 ? v[i] * 1e-39f : v[i] * 1e-2f;
  }
}

hone_status hn_feeds_make(const hn_plan *p, const hone_model *model, const hn_feed_case *c, hn_feed *feeds,
                          hone_error *error) {
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const hone_tensor_desc *d = hn_plan_given(p, i);
    const int64_t below = hone_model_input_bound(model, i);
    hone_data_free(&feeds[i].data);
    feeds[i].name = p->inputs[i]->name;
    hone_status status = hone_data_for_input(model, i, d, c->seed, &feeds[i].data, error);
    if (status != HONE_OK) return status;
    if (!takes_input(p, c, i)) continue;
    /* A number that chooses a branch does not choose one that these shapes contradict. */
    if (p->model->unfit_branches && hn_data_chooses(model, i)) continue;
    hn_rng r = {c->seed + i};
    if (c->edge >= HN_EDGE_SIGNED_ZEROS) {
      put_among_random(&feeds[i].data.tensor, c->edge, &r);
    } else if (hone_dtype_is_float(d->dtype)) {
      const double most = largest_float(d->dtype);
      put_floats(&feeds[i].data.tensor, c->edge, c->largest > 0 && c->largest < most ? c->largest : most, &r);
    } else {
      put_integers(&feeds[i].data.tensor, c->edge, below, c->largest, &r);
    }
  }
  return HONE_OK;
}

hone_status hn_feeds_give(hn_feed *feeds, uint32_t n, const hone_data *given, hone_error *error) {
  for (uint32_t i = 0; given && i < n; i++) {
    const hone_tensor *from = &given[i].tensor, *to = &feeds[i].data.tensor;
    if (!from->data) continue;
    if (from->desc.dtype != to->desc.dtype || !hone_desc_same_dims(&from->desc, &to->desc)) {
      char a[128], b[128];
      hn_fail(error, HONE_ERROR_INPUT, "the values given for input '%s' do not fit", feeds[i].name);
      hn_error_expected(error, "%s", hone_desc_format(&to->desc, a, sizeof a));
      hn_error_got(error, "%s", hone_desc_format(&from->desc, b, sizeof b));
      return HONE_ERROR_INPUT;
    }
    memcpy(to->data, from->data, (size_t)hone_desc_bytes(&to->desc));
  }
  return HONE_OK;
}

bool hn_feeds_all_given(const hone_data *given, uint32_t n) {
  bool all = given && n;
  for (uint32_t i = 0; all && i < n; i++) all = given[i].tensor.data != NULL;
  return all;
}

void hn_feeds_free(hn_feed *feeds, uint32_t n) {
  for (uint32_t i = 0; feeds && i < n; i++) hone_data_free(&feeds[i].data);
}

void hn_feeds_nudge(hn_feed *feeds, uint32_t n, float part, uint64_t seed) {
  hn_rng r = {seed};
  for (uint32_t i = 0; i < n; i++) {
    hone_tensor *t = &feeds[i].data.tensor;
    if (t->desc.dtype != HONE_DTYPE_F32) continue;
    float *v = t->data;
    for (int64_t e = 0, count = hone_desc_count(&t->desc); e < count; e++)
      v[e] *= hn_rng_below(&r, 2) && fabsf(v[e]) < FLT_MAX / 2 ? 1 + part : 1 - part;
  }
}
