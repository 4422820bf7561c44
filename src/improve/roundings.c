#include "improve/roundings.h"

#include "base/error.h"
#include "improve/compare.h"
#include "model/ir/bytes.h"
#include "model/ops/common/op.h"
#include "model/ops/normalize/training.h"
#include "optimize/passes/common/codes.h"
#include "optimize/step/qlinear.h"

#include <math.h>
#include <string.h>

enum {
  MOST_VALUES = 256,  /* between a value and what is known */
  MOST_ROUNDINGS = 6, /* that are pushed: 64 choices */
  MOST_INPUTS = 64
};
#define NEARLY_HALF 0.4999 /* of a level: a rounding is pushed no further than to its other neighbour */

typedef enum push { AS_IT_IS = 0, DOWN, UP } push;

typedef struct entry {
  const hn_value *value;
  const hone_tensor *given; /* known, or a constant */
  hone_tensor made;         /* by evaluation; data NULL: not yet, or given */
  bool read;                /* given as it is: not by its name alone, and not by evaluation */
  bool varies;              /* behind a rounding */
  push push;                /* of roundings */
} entry;

typedef struct walk {
  const hn_seen_values *known;
  bool by_name; /* floats that no choice changes are believed to be what the reference calls so */
  HN_VEC(entry) entries;
  size_t rounding[MOST_ROUNDINGS]; /* entries, the nearest to the value first */
  uint32_t n_roundings;
  bool seen, complete;
  hn_arena keep;
  uint32_t depth;
  hn_budget *budget;
} walk;

/* ---- what lies between */

static bool rounds(const hone_node *n, const hn_value *v) {
  if (!n->in[0] || !hone_dtype_is_float(n->in[0]->desc.dtype)) return false;
  if (hn_is_op(n, "Round")) return true; /* also what open_wide_codes leaves of codes of 16 bits */
  if (!hn_narrow_codes(v->desc.dtype)) return false;
  return hn_is_op(n, "QuantizeLinear") || (hn_is_op(n, "DynamicQuantizeLinear") && v->producer_index == 0);
}

static bool moves(const hone_node *n) {
  return n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW) || hn_code_move_of(n);
}

/* Each element of its result depends on one element of each operand. */
static bool keeps_apart(const hone_node *n) {
  return (n->op->flags & HONE_OP_POINTWISE) || moves(n) || hn_is_op(n, "QuantizeLinear") ||
         hn_is_op(n, "DequantizeLinear") || (hn_is_op(n, "BatchNormalization") && !hn_batch_norm_trains(n));
}

/* Integers that a node rounds to in its midst. */
static bool hides_rounding(const hone_node *n, const hn_value *v) {
  const bool exact = (n->op->flags & HONE_OP_POINTWISE || moves(n)) &&
                     !(n->in[0] && hone_dtype_is_float(n->in[0]->desc.dtype));
  return hone_dtype_size(v->desc.dtype) == 1 && v->desc.dtype != HONE_DTYPE_BOOL && !rounds(n, v) && !exact &&
         !hn_is_op(n, "MaxPool");
}

/* A Cast to what holds every number of its operand, but for last bits. */
static bool widens(const hone_node *n) {
  const hone_dtype from = n->in[0] ? n->in[0]->desc.dtype : HONE_DTYPE_NONE, to = n->out[0]->desc.dtype;
  const size_t now = hone_dtype_size(from), then = hone_dtype_size(to);
  if (from == to || from == HONE_DTYPE_BOOL) return true;
  if (to == HONE_DTYPE_F32 || to == HONE_DTYPE_F64) return !hone_dtype_is_float(from) || then >= now;
  return !hone_dtype_is_float(from) && !hone_dtype_is_float(to) && to != HONE_DTYPE_BOOL && then > now &&
         (hone_dtype_is_signed_int(to) || !hone_dtype_is_signed_int(from));
}

bool hn_rounds_within(const hone_node *n) {
  return n && strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, "DynamicQuantizeLSTM") == 0;
}

/* Its result jumps where its operand does not: a last bit decides, as in a rounding that nothing is known of.
 */
static bool jumps(const hone_node *n) {
  static const char *const types[] = {"Floor", "Ceil", "Sign", "Mod"};
  if (hn_is_op(n, "Cast") && n->out[0]) return !widens(n);
  if (hn_rounds_within(n)) return true;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (hn_is_op(n, types[i])) return true;
  return n->out[0] && n->out[0]->desc.dtype == HONE_DTYPE_BOOL;
}

static const hone_tensor *constant_of(const walk *w, const hn_value *v) {
  if (!v->constant || v->is_input) return NULL;
  if (!v->constant->data && v->deferred && !hn_value_make_bytes(v)) return NULL;
  return v->constant->data && v->constant->data != w->known->absent ? v->constant : NULL;
}

static size_t entry_of(const walk *w, const hn_value *v) {
  size_t i = 0;
  while (i < w->entries.len && w->entries.ptr[i].value != v) i++;
  return i < w->entries.len ? i : MOST_VALUES;
}

static size_t take(walk *w, const hn_value *v, bool *there);

/* The operands of what is not known; false: not all is seen. */
static bool take_operands(walk *w, entry *e, bool *there) {
  const hone_node *n = e->value->producer;
  if (!n || !n->op || !n->op->reference || n->n_in > MOST_INPUTS || n->n_out > MOST_INPUTS ||
      hides_rounding(n, e->value) || w->depth >= MOST_VALUES)
    return false;
  w->depth++;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i]) continue;
    const size_t k = take(w, n->in[i], there);
    if (k == MOST_VALUES) return false;
    e->varies |= w->entries.ptr[k].varies;
  }
  w->depth--;
  if (!e->varies && w->by_name && e->value->desc.dtype == HONE_DTYPE_F32)
    e->given = w->known->named(w->known->arg, e->value);
  if (!e->given && (jumps(n) || (e->varies && !keeps_apart(n)))) w->complete = false;
  return true;
}

/* Takes v and what it is computed from, operands first. Its entry, or MOST_VALUES: not all is seen, or memory
 * is short (then !*there). */
static size_t take(walk *w, const hn_value *v, bool *there) {
  size_t at = entry_of(w, v);
  if (at != MOST_VALUES) return at;
  entry e = {.value = v, .given = constant_of(w, v)};
  if (!e.given) e.given = w->known->of(w->known->arg, v);
  e.read = e.given != NULL;
  if (!e.given && !take_operands(w, &e, there)) return MOST_VALUES;
  const bool rounding = !e.given && rounds(v->producer, v);
  e.varies |= rounding;
  at = w->entries.len;
  if (at == MOST_VALUES) return at;
  if (!hn_vec_push(&w->entries, e)) return *there = false, MOST_VALUES;
  if (!rounding) return at;
  if (w->n_roundings == MOST_ROUNDINGS) w->complete = false; /* the farthest are left as they are */
  const uint32_t keep = w->n_roundings < MOST_ROUNDINGS ? w->n_roundings : MOST_ROUNDINGS - 1;
  memmove(w->rounding + 1, w->rounding, keep * sizeof *w->rounding);
  w->rounding[0] = at;
  w->n_roundings = keep + 1;
  return at;
}

/* ---- evaluation */

static void forget(walk *w, bool varying_alone) {
  for (size_t i = 0; i < w->entries.len; i++) {
    entry *e = &w->entries.ptr[i];
    if (varying_alone && !e->varies) continue;
    hn_budget_release(w->budget, &e->made);
  }
}

static double least_of(const hone_tensor *t) {
  double least = INFINITY;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) least = fmin(least, fabs(hn_get_f64(t, i)));
  return least;
}

/* Moves what is rounded by as much as right answers may lie apart, with a bias of floats that lowering has
 * rounded; to the other neighbour at the most. */
static hone_status pushed(const walk *w, const hone_tensor *x, double level, push p, hone_tensor *out,
                          hone_error *error) {
  hn_difference d;
  const int64_t bytes = hone_desc_bytes(&x->desc), n = hone_desc_count(&x->desc);
  hn_compare(x, x, &d);
  const double bias = level / (2 * HN_QLINEAR_UNITS_OF_LEVEL),
               by = fmin(w->known->slack * fmax(d.range, d.magnitude) + bias, NEARLY_HALF * level);
  *out = (hone_tensor){x->desc, hn_malloc((size_t)bytes)};
  if (!out->data) return hn_fail_memory(error, (uint64_t)bytes, "judging roundings");
  for (int64_t i = 0; i < n; i++) hn_set_f64(out, i, hn_get_f64(x, i) + (p == UP ? by : -by));
  return HONE_OK;
}

static hone_status value_of(walk *w, size_t at, const hone_tensor **out, hone_error *error);

/* DynamicQuantizeLinear finds its scale in what it rounds: only the codes are pushed. */
static void round_dynamic(const hone_tensor *x, const hone_tensor *scale, const hone_tensor *zero,
                          hone_tensor *y) {
  for (int64_t i = 0, n = hone_desc_count(&x->desc); i < n; i++) {
    const double v = rint(hn_get_f64(x, i) / hn_get_f64(scale, 0)) + hn_get_f64(zero, 0);
    hn_set_f64(y, i, fmin(fmax(v, 0), 255));
  }
}

static hone_status evaluate_dynamic(walk *w, const entry *e, const hone_tensor *x, hone_tensor *y,
                                    hone_error *error) {
  hone_tensor scale = {0}, zero = {0}, moved = {0};
  hone_tensor *out[] = {y, &scale, &zero};
  hone_status status = hn_eval_node(e->value->producer, &x, out, &w->keep, w->budget, error);
  if (status == HONE_OK && e->push) status = pushed(w, x, hn_get_f64(&scale, 0), e->push, &moved, error);
  if (status == HONE_OK && e->push) round_dynamic(&moved, &scale, &zero, y);
  hn_free(moved.data);
  hn_budget_release(w->budget, &scale);
  hn_budget_release(w->budget, &zero);
  return status;
}

static hone_status evaluate(walk *w, size_t at, hone_tensor *y, hone_error *error) {
  const entry e = w->entries.ptr[at];
  const hone_node *n = e.value->producer;
  const hone_tensor *in[MOST_INPUTS] = {0};
  hone_tensor *out[MOST_INPUTS] = {0}, moved = {0};
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < n->n_in && status == HONE_OK; i++)
    if (n->in[i]) status = value_of(w, entry_of(w, n->in[i]), &in[i], error);
  if (status != HONE_OK) return status;
  if (rounds(n, e.value) && hn_is_op(n, "DynamicQuantizeLinear"))
    return evaluate_dynamic(w, &e, in[0], y, error);
  /* A quotient of what was read is rounded in one way. */
  if (e.push && !w->entries.ptr[entry_of(w, n->in[0])].read) {
    status = pushed(w, in[0], in[1] ? least_of(in[1]) : 1, e.push, &moved, error);
    in[0] = &moved;
  }
  out[e.value->producer_index] = y;
  if (status == HONE_OK) status = hn_eval_node(n, in, out, &w->keep, w->budget, error);
  hn_free(moved.data);
  return status;
}

static hone_status value_of(walk *w, size_t at, const hone_tensor **out, hone_error *error) {
  if (!w->entries.ptr[at].given && !w->entries.ptr[at].made.data) {
    hone_tensor made = {0};
    const hone_status status = evaluate(w, at, &made, error);
    if (status != HONE_OK) { /* it may have been made before memory was short */
      hn_budget_release(w->budget, &made);
      return status;
    }
    w->entries.ptr[at].made = made;
  }
  *out = w->entries.ptr[at].given ? w->entries.ptr[at].given : &w->entries.ptr[at].made;
  return HONE_OK;
}

static size_t begin(walk *w, const hn_value *v, hone_error *error, hone_status *status) {
  bool there = true;
  w->complete = true;
  const size_t at = take(w, v, &there);
  *status = there ? HONE_OK : hn_fail(error, HONE_ERROR_MEMORY, "out of memory while judging roundings");
  w->seen = at != MOST_VALUES && !w->entries.ptr[at].given;
  return at;
}

static void end(walk *w) {
  forget(w, false);
  hn_vec_free(&w->entries);
  hn_arena_free(&w->keep);
}

/* What a reference refuses says nothing. */
static bool says_nothing(hone_status status) {
  return status != HONE_OK && status != HONE_ERROR_MEMORY && status != HONE_ERROR_CANCELLED &&
         status != HONE_ERROR_BUDGET;
}

/* ---- choices */

/* An element where the two differ, and whether some choice makes it. */
typedef struct doubt {
  int64_t at;
  bool got, reference;
} doubt;

typedef HN_VEC(doubt) doubts;

static bool near(const hone_tensor *a, const hone_tensor *b, int64_t i, double apart) {
  const double x = hn_get_f64(a, i), y = hn_get_f64(b, i);
  return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= apart;
}

static bool find_doubts(const hone_tensor *got, const hone_tensor *reference, double apart, doubts *out) {
  for (int64_t i = 0, n = hone_desc_count(&got->desc); i < n; i++)
    if (!near(got, reference, i, apart) && !hn_vec_push(out, (doubt){.at = i})) return false;
  return true;
}

/* Takes out what this choice explains; the rest stays in doubt. */
static void settle(const hone_tensor *choice, const hone_tensor *got, const hone_tensor *reference,
                   double apart, doubts *in) {
  size_t kept = 0;
  for (size_t i = 0; i < in->len; i++) {
    doubt d = in->ptr[i];
    d.got |= near(got, choice, d.at, apart);
    d.reference |= near(reference, choice, d.at, apart);
    if (!d.got || !d.reference) in->ptr[kept++] = d;
  }
  in->len = kept;
}

static hone_status choose(walk *w, size_t at, const hone_tensor *got, const hone_tensor *reference,
                          double apart, doubts *in, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t choice = 0; choice < 1u << w->n_roundings && in->len && status == HONE_OK; choice++) {
    const hone_tensor *y = NULL;
    for (uint32_t i = 0; i < w->n_roundings; i++)
      w->entries.ptr[w->rounding[i]].push = choice >> i & 1 ? UP : DOWN;
    forget(w, true);
    status = value_of(w, at, &y, error);
    if (status != HONE_OK) return status;
    if (y->desc.dtype != got->desc.dtype || !hone_desc_same_dims(&y->desc, &got->desc))
      return HONE_ERROR_UNSUPPORTED;
    settle(y, got, reference, apart, in);
  }
  return status;
}

/* A value behind no rounding is not seen: no choice changes it. */
static hone_status judge(walk *w, const hn_value *v, const hone_tensor *got, const hone_tensor *reference,
                         double apart, hn_right *out, hone_error *error) {
  doubts in = {0};
  hone_error why = {0};
  hone_status status = HONE_OK;
  const size_t at = begin(w, v, error, &status);
  *out = (hn_right){.seen = w->seen && w->n_roundings, .complete = w->complete, .first = -1};
  if (status == HONE_OK && out->seen) {
    if (!find_doubts(got, reference, apart, &in))
      status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while judging roundings");
    if (status == HONE_OK && (status = choose(w, at, got, reference, apart, &in, &why)) != HONE_OK && error)
      *error = why;
    if (says_nothing(status)) {
      out->seen = false;
      status = HONE_OK;
    }
    if (!out->seen || status != HONE_OK) in.len = 0; /* doubts that nobody settled are no faults */
  }
  out->wrong = (int64_t)in.len;
  if (in.len) out->first = in.ptr[0].at;
  for (size_t i = 0; i < in.len; i++)
    out->worst = fmax(out->worst, fabs(hn_get_f64(got, in.ptr[i].at) - hn_get_f64(reference, in.ptr[i].at)));
  hn_vec_free(&in);
  end(w);
  return status;
}

hone_status hn_right_answers(const hn_seen_values *known, const hn_value *v, const hone_tensor *got,
                             const hone_tensor *reference, double apart, hn_budget *budget, hn_right *out,
                             hone_error *error) {
  hone_status status = HONE_OK;
  bool done = false;
  for (int by_name = 1; by_name >= 0 && status == HONE_OK && !done; by_name--) {
    walk w = {.known = known, .by_name = by_name, .budget = budget};
    status = judge(&w, v, got, reference, apart, out, error);
    done = out->seen && !out->wrong;
  }
  return status;
}

hone_status hn_right_answer(const hn_seen_values *known, const hn_value *v, bool by_name, hn_budget *budget,
                            hone_tensor *out, hone_error *error) {
  walk w = {.known = known, .by_name = by_name, .budget = budget};
  const hone_tensor *made = NULL;
  hone_status status = HONE_OK;
  hone_error why = {0};
  *out = (hone_tensor){0};
  const size_t at = begin(&w, v, error, &status);
  if (status == HONE_OK && w.seen && (status = value_of(&w, at, &made, &why)) == HONE_OK) {
    *out = *made;
    w.entries.ptr[at].made.data = NULL;
  }
  if (says_nothing(status)) status = HONE_OK;
  if (status != HONE_OK && why.what[0] && error) *error = why;
  end(&w);
  return status;
}
