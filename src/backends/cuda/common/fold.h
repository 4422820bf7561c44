/* Reductions of any tensor over any dimensions (tactics/fold.cu). */
#ifndef HN_CUDA_COMMON_FOLD_H
#define HN_CUDA_COMMON_FOLD_H

#include "backends/cuda/common/tactic.h"

/* What a reduction computes, as expressions of device text over an accumulator (a, b), a value v and the
 * number of elements n; integers wrap as they do in C. NULL: as for floats. */
typedef struct hn_fold_rule {
  const char *zero, *add, *meet, *end;
  const char *integer_zero, *integer_add, *integer_end;
  bool real;    /* integers are summed as double, too */
  bool spatial; /* Global*Pool: all dimensions from 2 on */
  bool pair;    /* log-sum-exp: a maximum and a sum */
  bool power;   /* uses HN_P, the attribute p */
} hn_fold_rule;
typedef hn_fold_rule hn_cuda_fold_config;

bool hn_cuda_fold_accepts(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule,
                          hone_reason *why);
double hn_cuda_fold_cost(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule);
hone_status hn_cuda_fold_need(const hone_step *s, const hone_machine *m, const hn_fold_rule *rule,
                              hone_tactic_need *need, hone_error *error);
hone_status hn_cuda_fold_run(const hone_step_run *r, const hn_fold_rule *rule, hone_error *error);

#endif
