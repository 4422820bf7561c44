#include "backends/cpu/kernels/pointwise/pointwise.h"

unsigned hn_pw_arity(hone_pw_op op) {
  switch (op) {
  case HONE_PW_NONE:
  case HONE_PW_LOAD:
  case HONE_PW_CONST:
  case HONE_PW_COUNT: return 0;
  case HONE_PW_ADD:
  case HONE_PW_SUB:
  case HONE_PW_MUL:
  case HONE_PW_DIV:
  case HONE_PW_MIN:
  case HONE_PW_MAX:
  case HONE_PW_POW:
  case HONE_PW_PRELU:
  case HONE_PW_EQ:
  case HONE_PW_LT:
  case HONE_PW_LE:
  case HONE_PW_GT:
  case HONE_PW_GE:
  case HONE_PW_AND:
  case HONE_PW_OR:
  case HONE_PW_XOR: return 2;
  case HONE_PW_WHERE: return 3;
  default: return 1;
  }
}

/* Measured with AVX-512 in spans of 2048 and in epilogues (family post), which take about a tenth more; with
 * AVX2 divisions and roots take half of it. POW is a call of powf for every element. */
double hn_pw_cycles(hone_pw_op op) {
  switch (op) {
  case HONE_PW_LOAD:
  case HONE_PW_STORE:
  case HONE_PW_CONST: return 0;
  case HONE_PW_DIV:
  case HONE_PW_SQRT:
  case HONE_PW_RECIPROCAL:
  case HONE_PW_SOFTSIGN:
  case HONE_PW_EXP: return 9;
  case HONE_PW_LOG:
  case HONE_PW_TANH:
  case HONE_PW_SIGMOID:
  case HONE_PW_SILU: return 13;
  case HONE_PW_GELU_ERF:
  case HONE_PW_GELU_TANH:
  case HONE_PW_MISH: return 17;
  case HONE_PW_ELU:
  case HONE_PW_SELU:
  case HONE_PW_CELU: return 20;
  case HONE_PW_ERF: return 26;
  case HONE_PW_SOFTPLUS: return 40;
  case HONE_PW_POW: return 220;
  default: return 2;
  }
}

const struct hn_pw_ops *hn_pw_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pointwise", "f32", isa);
  return k ? k->ops : NULL;
}

hn_act_fn hn_act_find(hone_pw_op op, hn_isa isa) {
  if ((unsigned)op >= HONE_PW_COUNT) return NULL;
  const struct hn_pw_ops *ops = hn_pw_find(isa);
  return ops ? ops->act[op] : NULL;
}
