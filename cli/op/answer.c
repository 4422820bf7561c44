/* See answer.h. */
#include "cli/op/answer.h"

#include "cli/op/numbers.h"
#include "cli/op/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUDGES = 4 }; /* even */

/* The one place where it comes from. wide: the reference was evaluated in f64. Without any wider type the
 * first term is ulp(r): the reference is rounded, too. */
static op_bound bound_of(const hone_op_desc *op, hone_dtype dtype, bool wide) {
  (void)op;
  const bool f64 = dtype == HONE_DTYPE_F64;
  return (op_bound){.units = wide ? 16 : 32,
                    .unit = f64 ? 0x1p-53 : 0x1p-24,
                    .vanishing = op_smallest(f64 ? HONE_DTYPE_F64 : HONE_DTYPE_F32) / 2};
}

/* ------------------------------------------------------------------ the answer */

static double largest_of(const hone_tensor *t) {
  double most = 0;
  const int64_t n = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < n; i++) {
    const double v = fabs(op_element(t->desc.dtype, t->data, i));
    if (isfinite(v) && v > most) most = v;
  }
  return most;
}

static bool counts(const hone_tensor *t) {
  return hone_dtype_is_float(t->desc.dtype) && hone_desc_count(&t->desc) > 0;
}

/* least and most of the inputs; of those that have not the shape of input 0, when `rest`. */
static void reach_of(const op_sample *s, bool rest, double *least, double *most) {
  *least = INFINITY;
  *most = 0;
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (!counts(&s->in[i]) || (rest && hone_desc_same_dims(&s->in[i].desc, &s->in[0].desc))) continue;
    const double now = largest_of(&s->in[i]);
    *least = fmin(*least, now);
    *most = fmax(*most, now);
  }
}

static bool same_class(double a, double b) { return isnan(a) ? isnan(b) : isinf(a) && a == b; }

/* Where a small change of the inputs changes the class of a result, nothing is said of it. */
static void note_moves(const hone_tensor *base, const hone_tensor *now, double nudge, double *moved) {
  const int64_t n = hone_desc_count(&base->desc);
  for (int64_t k = 0; k < n; k++) {
    const double was = op_element(base->desc.dtype, base->data, k);
    const double is = op_element(now->desc.dtype, now->data, k), by = fabs(is - was) / nudge;
    if (!isfinite(was))
      moved[k] = same_class(was, is) ? moved[k] : (double)INFINITY;
    else if (!(by <= moved[k]))
      moved[k] = isnan(by) ? (double)INFINITY : by;
  }
}

static hone_status move_inputs(const op_sample *s, op_random *r, op_answer *a, hone_error *error) {
  const double nudge = a->as == HONE_DTYPE_F64 ? 0x1p-20 : 0x1p-10;
  hone_tensor now[OP_MOST];
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_out; i++) {
    if (!hone_dtype_is_float(s->out[i].dtype)) continue;
    a->moved[i] = calloc((size_t)hone_desc_count(&s->out[i]) + 1, sizeof(double));
    if (!a->moved[i]) {
      *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
      return HONE_ERROR_MEMORY;
    }
  }
  op_random before = *r;
  for (int k = 0; k < NUDGES && status == HONE_OK; k++) {
    /* Every other time all the other way: a result that is clipped moves to one side alone. */
    op_random again = before;
    if (k % 2 == 0) before = *r;
    status = op_reference(s, a->as, k % 2 ? -nudge : nudge, k % 2 ? &again : r, now, error);
    for (uint32_t i = 0; i < s->n_out && status == HONE_OK; i++)
      if (now[i].data && hone_dtype_is_float(s->out[i].dtype))
        note_moves(a->as ? &a->wide[i] : &a->own[i], &now[i], nudge, a->moved[i]);
    if (status == HONE_OK) op_outputs_free(now, s->n_out);
  }
  return status;
}

/* Every other element of the inputs that have the shape of input 0, `odd` ones or even ones, as another. */
static hone_status change_half(const op_sample *s, bool odd, op_sample *out, hone_error *error) {
  *out = *s;
  for (uint32_t i = 0; i < s->n_in; i++) out->in[i].data = NULL;
  for (uint32_t i = 0; i < s->n_in; i++) {
    const hone_tensor_desc *d = &s->in[i].desc;
    if (!d->dtype) continue;
    const int64_t n = hone_desc_count(d);
    const size_t bytes = (size_t)hone_desc_bytes(d);
    if (!(out->in[i].data = malloc(bytes + 1))) {
      *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
      return HONE_ERROR_MEMORY;
    }
    memcpy(out->in[i].data, s->in[i].data, bytes);
    if (!hone_dtype_is_float(d->dtype) || !hone_desc_same_dims(d, &s->in[0].desc)) continue;
    for (int64_t k = odd; k < n; k += 2)
      op_set_element(d->dtype, out->in[i].data, k, 0.25 + 0.5 * (double)(k % 7));
  }
  return HONE_OK;
}

static void free_half(op_sample *s) {
  for (uint32_t i = 0; i < s->n_in; i++) free(s->in[i].data);
}

/* Do elements at even places stay when those at odd ones change, and the other way? */
static hone_status find_local(const op_sample *s, op_random *r, op_answer *a, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_out; i++)
    a->local[i] = a->own[i].data && hone_desc_same_dims(&s->out[i], &s->in[0].desc);
  for (int odd = 0; odd < 2 && status == HONE_OK; odd++) {
    op_sample half;
    hone_tensor now[OP_MOST] = {0};
    status = change_half(s, odd, &half, error);
    if (status == HONE_OK) status = op_reference(&half, HONE_DTYPE_NONE, 0, r, now, error);
    for (uint32_t i = 0; i < s->n_out && status == HONE_OK; i++) {
      const hone_dtype d = s->out[i].dtype;
      const int64_t n = a->local[i] ? hone_desc_count(&s->out[i]) : 0;
      for (int64_t k = !odd; k < n && a->local[i]; k += 2) {
        const double was = op_element(d, a->own[i].data, k), is = op_element(d, now[i].data, k);
        a->local[i] = was == is || (isnan(was) && isnan(is));
      }
    }
    if (status == HONE_OK) op_outputs_free(now, s->n_out);
    free_half(&half);
  }
  return status;
}

/* Codes: what lies in the middle between two of them may become either by arithmetic in other types, and so
 * does it when their scale is a little larger or smaller. */
static hone_status move_scale(const op_sample *s, op_random *r, op_answer *a, hone_error *error) {
  const hone_codes_port *p = s->op->ports;
  while (p->tensor != HONE_CODES_RESULT) p++;
  hone_status status = HONE_OK;
  if (p->scale >= s->n_in || s->in[p->scale].desc.dtype != HONE_DTYPE_F32) return status;
  op_sample other = *s;
  float scale;
  hone_tensor now[OP_MOST];
  other.in[p->scale].data = &scale;
  a->moved[0] = calloc((size_t)hone_desc_count(&s->out[0]) + 1, sizeof(double));
  if (!a->moved[0]) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    return HONE_ERROR_MEMORY;
  }
  for (int k = 0; k < 2 && status == HONE_OK; k++) {
    scale = *(const float *)s->in[p->scale].data * (k ? 1 - 0x1p-16f : 1 + 0x1p-16f);
    status = op_reference(&other, HONE_DTYPE_NONE, 0, r, now, error);
    if (status != HONE_OK) break;
    note_moves(&a->own[0], &now[0], 1, a->moved[0]);
    op_outputs_free(now, s->n_out);
  }
  return status;
}

static bool takes(const hone_op_desc *op, hone_dtype d) { return !op->types || op->types & HONE_TYPES(d); }

hone_status op_answer_make(const op_sample *s, op_random *r, op_answer *a, hone_error *error) {
  const hone_dtype d = s->in[0].desc.dtype;
  *a = (op_answer){0};
  reach_of(s, false, &a->least, &a->most);
  reach_of(s, true, &a->rest_least, &a->rest_most);
  if (isinf(a->least)) a->least = 0;
  hone_error none = {0};
  hone_status status = op_reference(s, HONE_DTYPE_NONE, 0, r, a->own, error);
  if (status == HONE_OK && op_makes_codes(s)) status = move_scale(s, r, a, error);
  if (status != HONE_OK || !hone_dtype_is_float(d)) return status;
  if (d != HONE_DTYPE_F64 && takes(s->op, HONE_DTYPE_F64) &&
      op_reference(s, HONE_DTYPE_F64, 0, r, a->wide, &none) == HONE_OK)
    a->as = HONE_DTYPE_F64;
  else if (hone_dtype_size(d) == 2 && takes(s->op, HONE_DTYPE_F32) &&
           op_reference(s, HONE_DTYPE_F32, 0, r, a->wide, &none) == HONE_OK)
    a->as = HONE_DTYPE_F32;
  status = find_local(s, r, a, error);
  if (status != HONE_OK) return status;
  a->bound = bound_of(s->op, d, a->as == HONE_DTYPE_F64);
  /* A 16-bit reference alone moves by more than what is asked. */
  return a->as || hone_dtype_size(d) > 2 ? move_inputs(s, r, a, error) : HONE_OK;
}

void op_answer_free(op_answer *a) {
  op_outputs_free(a->own, OP_MOST);
  op_outputs_free(a->wide, OP_MOST);
  for (uint32_t i = 0; i < OP_MOST; i++) free(a->moved[i]);
  *a = (op_answer){0};
}

/* ------------------------------------------------------------------ judging */

/* How far y is from r, in terms of the bound; INFINITY: of another class. */
static double error_of(double y, double r, double bound, hone_dtype d) {
  const double most = op_largest(d);
  if (isnan(r) || isinf(r)) return same_class(r, y) ? 0 : (double)INFINITY;
  if (fabs(r) + bound > most && isinf(y) && (y > 0) == (r > 0)) return 0;
  if (!isfinite(y)) return INFINITY;
  if (fabs(r) > most) return fabs(y) >= most / 2 && (y > 0) == (r > 0) ? 0 : (double)INFINITY;
  const double off = fabs(y - r);
  return off == 0 ? 0 : bound > 0 ? off / bound : (double)INFINITY;
}

/* least and most of what element k of output i depends on. */
static void reach_at(const op_sample *s, const op_answer *a, uint32_t i, int64_t k, double *least,
                     double *most) {
  *least = a->least;
  *most = a->most;
  if (!a->local[i]) return;
  double low = a->rest_least, high = a->rest_most;
  for (uint32_t n = 0; n < s->n_in; n++) {
    if (!counts(&s->in[n]) || !hone_desc_same_dims(&s->in[n].desc, &s->in[0].desc)) continue;
    const double v = fabs(op_element(s->in[n].desc.dtype, s->in[n].data, k));
    if (!isfinite(v)) return;
    low = fmin(low, v);
    high = fmax(high, v);
  }
  /* Between numbers below 1 constants of the formula may stand, such as the 1 of 1 + exp(x). */
  *least = fmin(fmax(low, 1), a->least);
  *most = high;
}

static double judge(const op_sample *s, const op_answer *a, uint32_t i, int64_t k, double y) {
  const hone_dtype d = s->out[i].dtype;
  const double own = op_element(a->own[i].desc.dtype, a->own[i].data, k);
  if (!hone_dtype_is_float(d))
    return y == own ? 0 : a->moved[i] && fabs(y - own) <= a->moved[i][k] ? 1 : (double)INFINITY;
  const bool wide = a->as && a->wide[i].data && a->wide[i].desc.dtype == a->as;
  const double r = wide ? op_element(a->as, a->wide[i].data, k) : own;
  /* With the range of the elements' own arithmetic the reference itself says nothing. */
  if (wide && isnan(own) && !isnan(r)) return 0;
  const double half = op_ulp(d, r) / 2, off = isfinite(own) && isfinite(r) ? fabs(own - r) - half : 0;
  const double moved = a->moved[i] ? a->moved[i][k] : 0;
  if (isinf(moved)) return 0;
  double least, most;
  reach_at(s, a, i, k, &least, &most);
  /* Operations on as many such numbers leave the type. */
  const bool overflows = s->depth >= 2 && most * s->depth > op_largest(s->in[0].desc.dtype);
  const double vanishing = s->depth > 1 ? sqrt(s->depth) * a->bound.vanishing : 0;
  const double rounded = !wide && hone_dtype_size(d) == 2 ? half : 0;
  const double bound = half + rounded +
                       a->bound.units * sqrt(s->depth) * a->bound.unit * (fabs(r) + moved + least) +
                       vanishing + (off > 0 ? 2 * off : 0);
  const double e = error_of(y, r, bound, d);
  /* The reference overflows there, too, or may in another order. */
  return isinf(e) && (same_class(own, y) || (overflows && !isfinite(y))) ? 0 : e;
}

static void place_of(const hone_tensor_desc *d, int64_t k, char *buf, size_t size) {
  int64_t at[HONE_MAX_RANK];
  size_t n = 0;
  buf[0] = 0;
  for (int32_t i = d->rank; i-- > 0;) {
    at[i] = k % d->dim[i];
    k /= d->dim[i];
  }
  for (int32_t i = 0; i < d->rank && n < size; i++)
    n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? "," : "", (long long)at[i]);
}

static const char *number(double v, char buf[32]) {
  if (isnan(v)) return "nan"; /* of whatever sign */
  snprintf(buf, 32, "%.9g", v);
  return buf;
}

bool op_answer_right(const op_sample *s, const op_answer *a, uint32_t i, const void *got, double *worst,
                     char *why, size_t size) {
  const hone_dtype d = s->out[i].dtype;
  const int64_t n = hone_desc_count(&s->out[i]);
  int64_t wrong = 0, first = -1;
  double largest = 0;
  for (int64_t k = 0; k < n; k++) {
    const double e = judge(s, a, i, k, op_element(d, got, k));
    if (e > largest) largest = e;
    if (e > 1 && wrong++ == 0) first = k;
  }
  if (largest > *worst) *worst = largest;
  if (!wrong) return true;
  char place[120], is[32], wanted[32];
  place_of(&s->out[i], first, place, sizeof place);
  const hone_tensor *t = a->wide[i].data ? &a->wide[i] : &a->own[i];
  snprintf(why, size, "%lld of %lld elements of output %u are wrong; [%s] is %s, the reference has %s",
           (long long)wrong, (long long)n, i, place, number(op_element(d, got, first), is),
           number(op_element(t->desc.dtype, t->data, first), wanted));
  return false;
}
