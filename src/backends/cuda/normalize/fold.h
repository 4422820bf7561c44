/* Reductions of any tensor over any dimensions (normalize/fold.cu). */
#ifndef HN_CUDA_NORMALIZE_FOLD_H
#define HN_CUDA_NORMALIZE_FOLD_H

#include "backends/tactic.h"

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

HN_FAMILY_SIZED(hn_cuda_fold);

/* The rules; a .spatial, .real or .power behind one adds to it. */
#define HN_FOLD_SUM .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))", .end = "(a)"
#define HN_FOLD_MEAN .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))", .end = "(a) / (HN_ACC)(n)"
#define HN_FOLD_MAX                                                                                          \
  .zero = "hn_from_bits(0xff800000u)", .integer_zero = "HN_LEAST", .add = "HN_MEET(a, (HN_ACC)(v))",         \
  .meet = "((b) > (a) || (b) != (b) ? (b) : (a))", .end = "(a)"
#define HN_FOLD_MIN                                                                                          \
  .zero = "hn_from_bits(0x7f800000u)", .integer_zero = "HN_MOST", .add = "HN_MEET(a, (HN_ACC)(v))",          \
  .meet = "((b) < (a) || (b) != (b) ? (b) : (a))", .end = "(a)"
#define HN_FOLD_PROD .zero = "1", .add = "((a) * (v))", .meet = "((a) * (b))", .end = "(a)"
#define HN_FOLD_L1                                                                                           \
  .zero = "0", .add = "((a) + fabs((double)(v)))", .integer_zero = "0",                                      \
  .integer_add = "((a) + (HN_ACC)((v) < 0 ? (u64)0 - (u64)(v) : (u64)(v)))", .meet = "((a) + (b))",          \
  .end = "(a)"
#define HN_FOLD_L2                                                                                           \
  .zero = "0", .add = "((a) + (HN_ACC)(v) * (HN_ACC)(v))", .meet = "((a) + (b))", .end = "sqrt(a)",          \
  .real = true
#define HN_FOLD_SQUARES                                                                                      \
  .zero = "0", .add = "((a) + (HN_ACC)(v) * (HN_ACC)(v))", .meet = "((a) + (b))", .end = "(a)"
#define HN_FOLD_LOG_SUM                                                                                      \
  .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))", .end = "log(a)", .real = true
#define HN_FOLD_LOG_SUM_EXP                                                                                  \
  .zero = "hn_exp_sum_of(0, 0)", .add = "hn_exp_sum_meet(a, hn_exp_sum_of((double)(v), 1))",                 \
  .meet = "hn_exp_sum_meet(a, b)", .end = "hn_exp_sum_end(a)", .pair = true
#define HN_FOLD_POWERS                                                                                       \
  .zero = "0",                                                                                               \
  .add = "((a) + (HN_ACC)(HN_P == 2.0 ? (v) * (v) : HN_P == 1.0 ? fabs((double)(v)) : "                      \
         "pow(fabs((double)(v)), HN_P)))",                                                                   \
  .meet = "((a) + (b))", .end = "HN_P == 2.0 ? sqrt(a) : HN_P == 1.0 ? (a) : pow((double)(a), 1.0 / HN_P)",  \
  .power = true

#define hn_cuda_fold_tactic(NAME, ANCHOR, ...)                                                               \
  HN_TACTIC_SIZED(cuda, NAME, ANCHOR, 1, hn_cuda_fold, __VA_ARGS__)

#endif
