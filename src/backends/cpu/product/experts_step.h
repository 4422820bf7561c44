/* Mixtures of experts on the CPU: the tokens of each expert are brought together, so that its matrices are
 * read once, multiplied, and their answers added up. How a matrix is multiplied is the tactic's matter. */
#ifndef HN_CPU_PRODUCT_EXPERTS_STEP_H
#define HN_CPU_PRODUCT_EXPERTS_STEP_H

#include "backends/cpu/step/step.h"
#include "model/ops/microsoft/experts/experts.h"

enum { HN_EXPERTS_FIRST, HN_EXPERTS_SECOND, HN_EXPERTS_THIRD };

/* y[i][c] = x[i] . row c of the expert's matrix, and its bias, for `rows` tokens and columns [from, end). */
typedef void (*hn_experts_product)(const void *context, int which, int64_t expert, const float *x,
                                   int64_t rows, int64_t from, int64_t end, float *y, uint32_t thread);

typedef struct hn_experts_job {
  const hn_experts *of;
  const hone_step_run *run;
  hn_experts_product product;
  const void *context;
  hn_isa isa;
  int64_t grain; /* columns of a task are multiples of it */
} hn_experts_job;

/* Bytes of the workspace that the run needs at its beginning. */
size_t hn_experts_workspace(const hn_experts *e);
/* given: router_weights, or NULL. */
void hn_experts_exec(const hn_experts_job *j, const float *x, const float *scores, const float *given,
                     float *y);
/* Sizes of x and the scores, from the step; false where they are not plain f32. */
bool hn_experts_read(const hone_step *s, hn_experts *e, hone_reason *why);
/* Seconds, when each weight takes so many bytes. */
double hn_experts_cost(const hone_step *s, const hone_machine *m, const hn_experts *e, double weight_bytes,
                       double efficiency);

#endif
