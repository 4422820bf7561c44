/* A plan as a form, which is the same for all sizes of its inputs, and the numbers that depend on them.
 *
 * hn_numbers_list walks a plan, its graph and its steps in one fixed order. What may not differ between two
 * plans of one form (operators, types, tactics, who reads what) goes into a hash; sizes are listed by where
 * they stand, constants that the plan made with their bytes. Two plans whose forms are equal have the same
 * number of numbers, and number i means the same in both (line.h). */
#ifndef HN_OPTIMIZE_PLAN_NUMBERS_H
#define HN_OPTIMIZE_PLAN_NUMBERS_H

#include "optimize/step/step.h"

/* A descriptor of the plan's own: its dimensions are numbers `first` and following. */
typedef struct hn_described {
  hone_tensor_desc *desc;
  uint32_t first;
  bool derived;  /* strides follow from dimensions and layout; else they are the numbers behind them */
  bool dense;    /* channels-last, and pixels follow each other */
  hn_slot *slot; /* whose bytes are those of the descriptor, or NULL */
} hn_described;

/* A constant that the plan's graph made for itself. */
typedef struct hn_content {
  hn_value *value;
  hone_tensor *tensor;
  uint32_t desc;         /* of the tensor, among the descriptors */
  const hone_node *made; /* the node that it was folded of, or NULL */
} hn_content;

typedef struct hn_extent {
  uint32_t from, until;
} hn_extent;

typedef struct hn_step_extent {
  hn_extent descs, reals;
} hn_step_extent;

typedef struct hn_attributes {
  const hone_node *of;
  hn_extent numbers;
} hn_attributes;

typedef struct hn_numbers {
  uint64_t form[2];
  HN_VEC(int64_t *) at;
  HN_VEC(hn_described) descs;
  HN_VEC(hn_content) contents;
  HN_VEC(double *) costs;
  HN_VEC(float *) reals;        /* numbers in programs and epilogues, where constants may have gone */
  HN_VEC(hn_attributes) nodes;  /* hone_node.mark less 1 is a node's place */
  HN_VEC(hn_step_extent) steps; /* of each step, its parts included */
  hone_reason why;              /* it is no such plan */
  bool failed, no_memory;
  uint32_t *seen; /* by value id: its number in the walk, and 1 */
  const hn_plan *plan;
  uint32_t n_seen, n_marked, depth;
} hn_numbers;

/* False: the plan cannot be one of several, which `why` says, or memory is short. Free it in any case. `more`
 * [n_more] are descriptors beside the plan. Changes nothing but the nodes' marks. */
bool hn_numbers_list(hn_plan *plan, hone_tensor_desc *const *more, uint32_t n_more, hn_numbers *out);
void hn_numbers_free(hn_numbers *numbers);
/* The numbers among a node's attributes: of the graph, or of a step. */
hn_extent hn_numbers_of_node(const hn_numbers *numbers, const hone_node *node);

#endif
