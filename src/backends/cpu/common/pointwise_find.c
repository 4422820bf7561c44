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

const struct hn_pw_ops *hn_pw_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pointwise", "f32", isa);
  return k ? k->ops : NULL;
}

hn_act_fn hn_act_find(hone_pw_op op, hn_isa isa) {
  if ((unsigned)op >= HONE_PW_COUNT) return NULL;
  const struct hn_pw_ops *ops = hn_pw_find(isa);
  return ops ? ops->act[op] : NULL;
}
