#include "optimize/step/work.h"

#include "base/names.h"

HN_NAME_FUNCTION(hn_arithmetic_name, hone_arithmetic, HONE_ARITHMETICS)

hone_work hn_tactic_work(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine) {
  hone_work w = {.flops = step->cost.flops};
  if (tactic && tactic->work) tactic->work(step, machine, &w);
  return w;
}

static const hn_arithmetic_types types_of[] = {
#define X(id, word, operand, sum) {HONE_DTYPE_##operand, HONE_DTYPE_##sum, HONE_DTYPE_NONE},
    HONE_ARITHMETICS(X)
#undef X
};

/* The narrower side, where a step also converts. */
static hone_dtype elements_of(const hone_step *s, hone_dtype out) {
  const hone_dtype in = s->n_inputs ? s->input[0].desc.dtype : HONE_DTYPE_NONE;
  return hone_dtype_is_float(in) && hone_dtype_size(in) < hone_dtype_size(out) ? in : out;
}

hn_arithmetic_types hn_arithmetic_types_of(const hone_step *s, const hone_work *work) {
  const hone_dtype out = s->n_outputs ? s->output[0].desc.dtype : HONE_DTYPE_NONE;
  hn_arithmetic_types t = {.storage = out};
  if (!work->split) t = types_of[work->arithmetic];
  t.storage = out;
  if (work->arithmetic == HONE_ARITHMETIC_INT8 || work->arithmetic == HONE_ARITHMETIC_INT8_VECTORS)
    t.operand = s->n_inputs ? s->input[0].desc.dtype : t.operand;
  if (t.operand == HONE_DTYPE_NONE || work->arithmetic == HONE_ARITHMETIC_TF32)
    t.operand = elements_of(s, out);
  if (t.sum == HONE_DTYPE_NONE)
    t.sum = t.operand == HONE_DTYPE_F64       ? HONE_DTYPE_F64
            : hone_dtype_is_float(t.operand)  ? HONE_DTYPE_F32
            : hone_dtype_size(t.operand) == 1 ? HONE_DTYPE_I32
                                              : t.operand;
  return t;
}
