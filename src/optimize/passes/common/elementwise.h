/* Functions of one element: what may change places with what only moves elements. */
#ifndef HN_OPTIMIZE_PASSES_ELEMENTWISE_H
#define HN_OPTIMIZE_PASSES_ELEMENTWISE_H

#include "optimize/match/read.h"

static inline bool hn_is_elementwise(const hone_node *n) {
  static const char *const ops[] = {
      "Relu",     "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish",  "Elu", "Selu",
      "Softplus", "Softsign",  "Exp",     "Log",  "Sqrt",        "Abs",        "Neg", "Erf",
      "Gelu",     "Mish",      "Floor",   "Ceil", "Round",       "Reciprocal", "Add", "Sub",
      "Mul",      "Div",       "Pow",     "Max",  "Min",         "Clip",       "Cast"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return n->n_out == 1 && n->out[0];
  return false;
}

#endif
