/* Conditions that several patterns share. */
#ifndef HN_OPTIMIZE_MATCH_PATTERNS_COMMON_H
#define HN_OPTIMIZE_MATCH_PATTERNS_COMMON_H

#include "optimize/match/match.h"
#include "optimize/match/read.h"

#include <stdio.h>
#include <string.h>

/* False with a reason when the reason's condition does not hold. */
#define HN_REFUSE(why, ...) (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), false)

/* The first Clip of the match clips to lo..hi. */
static inline bool hn_clips_to(const hone_match *m, double lo, double hi, hone_reason *why) {
  for (uint32_t k = 0; k < m->pattern->n_lines; k++) {
    double a, b;
    if (!hn_is_op(m->node[k], "Clip")) continue;
    if (!hn_constant_clip(m->node[k], &a, &b))
      return HN_REFUSE(why, "the bounds of '%.80s' are no constants", m->node[k]->name);
    if (!hn_same_number(a, lo) || !hn_same_number(b, hi))
      return HN_REFUSE(why, "'%.80s' clips to %g..%g, not %g..%g", m->node[k]->name, a, b, lo, hi);
  }
  return true;
}

/* ReduceMean over the last dimension alone, kept as 1; of three dimensions an average over all pixels is
 * that. */
static inline bool hn_reduces_last(const hone_node *n, hone_reason *why) {
  if (hn_is_op(n, "GlobalAveragePool"))
    return (n->in[0] && n->in[0]->desc.rank == 3) ||
           HN_REFUSE(why, "'%.80s' does not reduce the last dimension alone", n->name);
  int64_t axes[HONE_MAX_RANK];
  bool absent;
  int64_t count = hn_node_ints_or_input(n, "axes", 1, axes, HONE_MAX_RANK, &absent);
  if (hone_node_int(n, "keepdims", 1) != 1)
    return HN_REFUSE(why, "'%.80s' drops the reduced dimension", n->name);
  if (count != 1 || !n->in[0] || (axes[0] != -1 && axes[0] != n->in[0]->desc.rank - 1))
    return HN_REFUSE(why, "'%.80s' does not reduce the last dimension alone", n->name);
  return true;
}

/* Both reductions (or the one) of a normalisation, its epsilon, and a scale over the last dimension alone. */
static inline bool hn_normalises_last(const hone_match *m, hone_reason *why) {
  double eps;
  const hn_value *x = hn_match_get(m, "x"), *y = hn_match_root(m)->out[0];
  for (uint32_t k = 0; k < m->pattern->n_lines; k++)
    if ((hn_is_op(m->node[k], "ReduceMean") || hn_is_op(m->node[k], "GlobalAveragePool")) &&
        !hn_reduces_last(m->node[k], why))
      return false;
  if (!hn_constant_scalar(hn_match_get(m, "eps"), &eps) || eps < 0)
    return HN_REFUSE(why, "epsilon is no constant");
  if (x->desc.rank < 1) return HN_REFUSE(why, "the rank of '%.80s' is not known", x->name);
  for (int i = 0; i < 2; i++) {
    const hn_value *p = hn_match_get(m, i ? "beta" : "gamma");
    if (!p) continue;
    if (p->desc.rank != 1 || p->desc.dim[0] < 0 || p->desc.dim[0] != x->desc.dim[x->desc.rank - 1])
      return HN_REFUSE(why, "'%.80s' is no vector along the last dimension", p->name);
    if (p->desc.dtype != x->desc.dtype)
      return HN_REFUSE(why, "'%.80s' has another type than the data", p->name);
  }
  return y->desc.rank == x->desc.rank || HN_REFUSE(why, "the result has another rank");
}

static inline void hn_normalisation_attrs(const hone_match *m, const hone_attr_sink *sink) {
  double eps = 1e-5;
  hn_constant_scalar(hn_match_get(m, "eps"), &eps);
  sink->set_int(sink->self, "axis", -1);
  sink->set_float(sink->self, "epsilon", (float)eps);
}

#endif
