#include "improve/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *of, *formula, *source;
} classes[] = {
#define CLASS(id, name, of, formula, source) {name, of, formula, source},
#include "improve/tolerances.def"
};

static const struct {
  const char *type;
  hn_tolerance_class class;
  double ulps, slack;
} operators[] = {
#define OPERATOR(type, class, ulps, slack) {type, HN_TOLERANCE_##class, ulps, slack},
#include "improve/tolerances.def"
};

double hn_gamma(int64_t terms) {
  const double ku = (double)terms * HN_UNIT_ROUNDING;
  return ku < 1 ? ku / (1 - ku) : INFINITY;
}

/* ---- terms of one sum */

static int64_t product(const hone_tensor_desc *d, int32_t from, int32_t to) {
  int64_t n = 1;
  for (int32_t i = from; i < to; i++) {
    if (d->dim[i] < 0) return 0;
    n *= d->dim[i];
  }
  return n;
}

static int64_t terms_of_products(const hone_node *n) {
  const hone_tensor_desc *a = &n->in[0]->desc, *b = n->n_in > 1 && n->in[1] ? &n->in[1]->desc : NULL;
  const int64_t bias = n->n_in > 2 && n->in[2] ? 1 : 0;
  if (!b || a->rank < 1 || b->rank < 1) return 0;
  switch (n->op->product) {
  case HONE_PRODUCT_CONV: return product(b, 1, b->rank) + bias;
  case HONE_PRODUCT_CONV_TRANSPOSE:
    return b->dim[0] / hone_node_int(n, "group", 1) * product(b, 2, b->rank) + bias;
  case HONE_PRODUCT_GEMM: {
    const int32_t k = hone_node_int(n, "transA", 0) ? 0 : 1;
    const int64_t factors = (hone_node_float(n, "alpha", 1) != 1) + (hone_node_float(n, "beta", 1) != 1);
    return product(a, k, k + 1) + bias + factors;
  }
  default: return product(a, a->rank - 1, a->rank); /* MatMul */
  }
}

static int64_t terms_of_window(const hone_node *n) {
  size_t rank;
  const int64_t *kernel = hone_node_ints(n, "kernel_shape", &rank);
  int64_t k = 1;
  for (size_t i = 0; i < rank; i++) k *= kernel[i];
  return k + 1; /* the quotient */
}

/* Elements of the input that end in one of the output. */
static int64_t terms_of_reduction(const hone_node *n) {
  const hone_tensor_desc *a = &n->in[0]->desc, *y = &n->out[0]->desc;
  if (!hone_desc_known(a) || !hone_desc_known(y) || hone_desc_count(y) < 1) return 0;
  return hone_desc_count(a) / hone_desc_count(y) + 1;
}

static int64_t terms_of_sum(const hone_node *n) {
  if (n->op && n->op->product != HONE_PRODUCT_NONE) return terms_of_products(n);
  if (strcmp(n->op_type, "AveragePool") == 0) return terms_of_window(n);
  if (strcmp(n->op_type, "Sum") == 0 || strcmp(n->op_type, "Mean") == 0) return (int64_t)n->n_in + 1;
  if (strcmp(n->op_type, "Einsum") != 0) return terms_of_reduction(n);
  return 0; /* its equation may sum over anything */
}

/* Elements that a mean, or a sum of exponentials, is over. */
static int64_t terms_of_row(const hone_node *n) {
  const hone_tensor_desc *a = &n->in[0]->desc;
  const bool softmax = strcmp(n->op_type, "Softmax") == 0, old = softmax && n->opset < 13;
  if (!hone_desc_known(a) || a->rank < 1) return 0;
  if (strcmp(n->op_type, "InstanceNormalization") == 0) return product(a, a->rank < 2 ? a->rank : 2, a->rank);
  if (strcmp(n->op_type, "GroupNormalization") == 0)
    return product(a, a->rank < 1 ? a->rank : 1, a->rank) / hone_node_int(n, "num_groups", 1);
  if (strcmp(n->op_type, "MeanVarianceNormalization") == 0) return product(a, 0, a->rank); /* at the most */
  int64_t axis = hone_node_int(n, "axis", old ? 1 : -1);
  if (axis < 0) axis += a->rank;
  if (axis < 0 || axis >= a->rank) return 0;
  return product(a, (int32_t)axis, softmax && !old ? (int32_t)axis + 1 : a->rank);
}

/* ---- classes */

static bool moves(const hone_node *n) {
  const uint32_t mask = HONE_OP_MOVE | HONE_OP_VIEW | HONE_OP_SHAPE_ONLY;
  return (n->op && n->op->flags & mask) ||
         (n->n_out && n->out[0] && !hone_dtype_is_float(n->out[0]->desc.dtype));
}

/* A tactic of Winograd's takes one stride for both directions of a plane. */
static int64_t stride_of(const hone_node *n) {
  size_t count = 0;
  const int64_t *strides = hone_node_ints(n, "strides", &count);
  return count ? strides[count - 1] : 1;
}

/* Products of points and weights in a sum: every tap of depth is one more of a channel. */
static int64_t channels_and_depth(const hone_tensor_desc *w) {
  return w->dim[1] * (w->rank == 5 ? w->dim[2] : 1);
}

static hn_tolerance_class class_of(const hone_node *n, const char *tactic, hn_tolerance *t) {
  if (n->domain[0] == 0)
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
      if (strcmp(operators[i].type, n->op_type) != 0) continue;
      t->ulps = operators[i].ulps;
      t->slack = operators[i].slack;
      if (strcmp(n->op_type, "Gelu") == 0 && strcmp(hone_node_string(n, "approximate", "none"), "none") != 0)
        return HN_TOLERANCE_OTHER;
      const char *winograd = tactic ? strstr(tactic, "winograd") : NULL;
      if (winograd && operators[i].class == HN_TOLERANCE_SUM) {
        t->winograd = hn_winograd_form_of(winograd[strlen("winograd")] - '0', stride_of(n));
        return t->winograd ? HN_TOLERANCE_WINOGRAD : HN_TOLERANCE_OTHER;
      }
      if (tactic && strstr(tactic, "strassen") && operators[i].class == HN_TOLERANCE_SUM)
        return HN_TOLERANCE_STRASSEN;
      return operators[i].class;
    }
  return moves(n) ? HN_TOLERANCE_EXACT : HN_TOLERANCE_OTHER;
}

void hn_tolerance_of(const hone_node *n, const char *tactic, hn_tolerance *t) {
  *t = (hn_tolerance){0};
  t->class = class_of(n, tactic, t);
  if (n->n_in && n->in[0] && n->n_out && n->out[0]) {
    if (t->class == HN_TOLERANCE_SUM || t->class == HN_TOLERANCE_STRASSEN) t->terms = terms_of_sum(n);
    if (t->class == HN_TOLERANCE_SOFTMAX || t->class == HN_TOLERANCE_NORM) t->terms = terms_of_row(n);
    if (t->class == HN_TOLERANCE_WINOGRAD && n->n_in > 1)
      t->terms = hn_winograd_terms(t->winograd, channels_and_depth(&n->in[1]->desc));
  }
  t->class_name = classes[t->class].name;
  t->of = classes[t->class].of;
  t->formula = classes[t->class].formula;
  t->source = classes[t->class].source;
}

double hn_tolerance_share(const hn_tolerance *t) {
  const double u = HN_UNIT_ROUNDING, k = (double)t->terms;
  switch (t->class) {
  case HN_TOLERANCE_EXACT: return 0;
  case HN_TOLERANCE_SUM: return 2 * hn_gamma(t->terms);
  case HN_TOLERANCE_WINOGRAD: return (k + HN_WINOGRAD_ROUNDINGS) * u * t->winograd->norm;
  case HN_TOLERANCE_STRASSEN: return (3 * k + 30) * u;
  case HN_TOLERANCE_FUNCTION: return (2 * t->ulps + 1) * u;
  case HN_TOLERANCE_SOFTMAX: return (k + 10) * u;
  case HN_TOLERANCE_NORM: return (k + 7 + 2.1 * (k + 8 + k / 2 + 6) + 4) * u;
  default: return -1;
  }
}

/* ---- of a plan */

static void count_node(const hn_step *s, const hone_node *n, hone_verify_result *out,
                       uint32_t place[HN_TOLERANCE_CLASSES]) {
  hn_tolerance t;
  if (n->n_out && n->out[0] && n->out[0]->constant) return;
  hn_tolerance_of(n, s->tactic ? s->tactic->name : NULL, &t);
  if (!place[t.class]) {
    out->tolerances[out->n_tolerances] = (hone_tolerance){
        .kind = t.class_name, .formula = t.formula, .of = t.of, .source = t.source, .share = -INFINITY};
    place[t.class] = ++out->n_tolerances;
  }
  hone_tolerance *row = &out->tolerances[place[t.class] - 1];
  const double share = hn_tolerance_share(&t);
  row->nodes++;
  if (share <= row->share) return;
  row->share = share;
  row->terms = (uint64_t)t.terms;
  snprintf(row->largest, sizeof row->largest, "%s", n->name);
}

void hn_tolerances_of_plan(const hn_plan *plan, hone_verify_result *out) {
  uint32_t place[HN_TOLERANCE_CLASSES] = {0}; /* 1 and more: the class's row */
  _Static_assert(HN_TOLERANCE_CLASSES <= HONE_MOST_TOLERANCES, "a row for every class");
  out->n_tolerances = 0;
  for (size_t i = 0; i < plan->steps.len; i++) {
    const hn_step *s = &plan->steps.ptr[i];
    for (uint32_t k = 0; k < s->n_nodes; k++) count_node(s, s->nodes[k], out, place);
  }
}
