/* The bounds of tolerances.def for the nodes and steps of a model. Inside of improve only. */
#ifndef HN_IMPROVE_TOLERANCE_H
#define HN_IMPROVE_TOLERANCE_H

#include "backends/cpu/kernels/winograd/winograd.h"
#include "improve/side.h"

#define HN_UNIT_ROUNDING 0x1p-24

typedef enum hn_tolerance_class {
#define CLASS(id, name, of, formula, source) HN_TOLERANCE_##id,
#include "improve/tolerances.def"
  HN_TOLERANCE_CLASSES
} hn_tolerance_class;

typedef struct hn_tolerance {
  hn_tolerance_class class;
  int64_t terms; /* K; 0: the class has none, or dimensions are not known */
  const hn_winograd_form *winograd;
  double ulps, slack;     /* of functions */
  const char *class_name; /* static, like the two below */
  const char *of, *formula, *source;
} hn_tolerance;

/* K u / (1 - K u); infinite when K is so large that it says nothing. */
double hn_gamma(int64_t terms);

/* tactic: name of what computes it, or NULL. */
void hn_tolerance_of(const hone_node *node, const char *tactic, hn_tolerance *out);

/* The bound as a share of `of`, where the data's own figures (spread, t, |x| / |y|) are the least that they
 * can be. Negative: OTHER. */
double hn_tolerance_share(const hn_tolerance *tolerance);

/* The classes of the plan's nodes with the largest K of each. */
void hn_tolerances_of_plan(const hn_plan *plan, hone_verify_result *out);

#endif
