#include "backends/cuda/elementwise/casting.h"

#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/step/functions.h"
#include "backends/tactic.h"
#include "base/error.h"

/* Appends the expression of value `from` (a variable's name) as a value of type `to`. */
static void convert(hn_str *text, const char *name, hone_dtype from, hone_dtype to) {
  const char *value = hn_cuda_value(to);
  if (from == to)
    hn_str_puts(text, name);
  else if (to == HONE_DTYPE_BF16 && (from == HONE_DTYPE_U64 || from == HONE_DTYPE_I64))
    hn_str_printf(text, "hn_odd_f32_%s(%s)", hone_dtype_name(from), name);
  else if ((from == HONE_DTYPE_F64 && hone_dtype_size(to) == 2 && hone_dtype_is_float(to)) ||
           (to == HONE_DTYPE_BF16 && !hone_dtype_is_float(from) && hone_dtype_size(from) >= 4))
    hn_str_printf(text, "hn_odd_f32((double)%s)", name);
  else if (to == HONE_DTYPE_BOOL || from == HONE_DTYPE_BOOL)
    hn_str_printf(text, "(%s)(%s != 0)", value, name);
  else if (!hone_dtype_is_float(from) || hone_dtype_is_float(to))
    hn_str_printf(text, "(%s)%s", value, name);
  else if (to == HONE_DTYPE_U64) /* what is below zero wraps, what is too large saturates */
    hn_str_printf(text, "%s < 0 ? (u64)hn_trunc_i64(%s) : hn_trunc_u64(%s)", name, name, name);
  else if (to == HONE_DTYPE_I32)
    hn_str_printf(text, "(i32)hn_clamp_i64(%s, -0x7fffffffll - 1, 0x7fffffffll)", name);
  else /* narrow and unsigned types wrap */
    hn_str_printf(text, "(%s)hn_trunc_i64(%s)", value, name);
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)s;
  hn_str_puts(text, "    o0 = ");
  convert(text, "i0", plan->operand[1].dtype, plan->operand[0].dtype);
  hn_str_puts(text, ";\n");
}

static bool describe(const hone_step *s, hn_cuda_elementwise *plan, hone_reason *why) {
  if (s->n_epilogue) return hn_refuse(why, "no epilogue is generated");
  return hn_cuda_elementwise_step(plan, s, 1, NULL, why);
}

bool hn_cuda_casting_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, why);
}

double hn_cuda_casting_cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

hone_status hn_cuda_casting_run(const hone_step_run *run, hone_error *error) {
  return hn_cuda_elementwise_run(run, 1, body, error);
}
