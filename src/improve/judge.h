/* Is what a step computes right, given what it was given? Its node's scalar reference runs on the step's own
 * inputs, and the difference is held against the bound of the operator's class (tolerance.h). Nothing
 * upstream matters, no name that a pass moved, and no other step's error. Inside of improve only. */
#ifndef HN_IMPROVE_JUDGE_H
#define HN_IMPROVE_JUDGE_H

#include "improve/tolerance.h"
#include "improve/values.h"
#include "model/ir/eval.h"

typedef struct hn_judgement {
  bool known; /* false: not a step of f32 with a class, or a value is missing; nothing else is said */
  hn_tolerance tolerance;
  double bound, measured; /* at the element where measured / bound is largest */
  int64_t element;
  bool over; /* there: measured > bound */
} hn_judgement;

/* kept: every value of a run of `plan` on the feeds. budget: of the references, or NULL. */
hone_status hn_judge_step(const hn_plan *plan, const hn_step *step, const hn_values *kept,
                          const hn_feed *feeds, uint32_t n, hn_budget *budget, hn_judgement *out,
                          hone_error *error);

/* Runs `test` once more. node: the first step that differs from another side ("": none is known), replaced by
 * an earlier one whose own arithmetic is over its bound. *out is left alone when nothing could be judged. */
hone_status hn_side_judge(hn_side *test, const hn_feed *feeds, uint32_t n, double max_seconds, char *node,
                          size_t size, hone_step_judgement *out, hone_error *error);

#endif
