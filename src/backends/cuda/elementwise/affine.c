#include "backends/cuda/elementwise/affine.h"

#include <string.h>

#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

enum { OPERANDS = 3 }; /* x, scale, zero point */

static bool quantizes(const hone_step *s) { return !strcmp(s->anchor, "QuantizeLinear"); }

/* A scale or zero point as a tensor of x's rank that is long along its axis alone. */
static bool spread(const hone_step *s, uint32_t i, hone_tensor_desc *out, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *d = &s->input[i].desc;
  int64_t axis = hone_node_int(s->node, "axis", 1);
  *out = hone_desc(d->dtype, 0, NULL);
  if (hone_desc_count(d) == 1) return true;
  if (axis < 0) axis += x->rank;
  if (hone_node_int(s->node, "block_size", 0)) return hn_refuse(why, "blocked scales");
  if (d->rank != 1 || axis < 0 || axis >= x->rank || d->dim[0] != x->dim[axis])
    return hn_refuse(why, "input %u is no vector along the axis", i);
  out->rank = x->rank;
  for (int32_t k = 0; k < x->rank; k++) out->dim[k] = k == axis ? d->dim[0] : 1, out->stride[k] = k == axis;
  return true;
}

static bool short_integer(hone_dtype t) {
  return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 || t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16;
}

static bool describe(const hone_step *s, hn_cuda_elementwise *plan, void *const *at, hone_reason *why) {
  hone_tensor_desc side[OPERANDS];
  const hone_tensor_desc *in[OPERANDS] = {&s->input[0].desc}, *out = &s->output[0].desc;
  uint32_t n = 1;
  if (s->n_epilogue) return hn_refuse(why, "no epilogue is generated");
  if (!hn_cuda_known(s, why) || !hn_cuda_has(s, 1)) return false;
  for (uint32_t i = 1; i < OPERANDS; i++) {
    if (!hn_cuda_has(s, i)) continue;
    if (!spread(s, i, &side[n], why)) return false;
    in[n] = &side[n];
    n++;
  }
  if (!hn_cuda_type(side[1].dtype)) return hn_refuse(why, "scales are %s", hone_dtype_name(side[1].dtype));
  if (quantizes(s)) {
    if (!short_integer(out->dtype)) return hn_refuse(why, "codes are %s", hone_dtype_name(out->dtype));
    if (!hn_cuda_type(in[0]->dtype)) return hn_refuse(why, "the data is %s", hone_dtype_name(in[0]->dtype));
  } else if (!hn_cuda_type(out->dtype) || (!short_integer(in[0]->dtype) && in[0]->dtype != HONE_DTYPE_I32)) {
    return hn_refuse(why, "%s to %s", hone_dtype_name(in[0]->dtype), hone_dtype_name(out->dtype));
  }
  return hn_cuda_elementwise_plan(plan, &out, 1, in, n, at, 0, why);
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  const bool zero = plan->n_in == OPERANDS;
  if (!quantizes(s)) { /* differences of short codes are exact in f32, those of i32 in f64 */
    const char *type = s->input[0].desc.dtype == HONE_DTYPE_I32 ? "double" : "float";
    hn_str_printf(text, "    o0 = (float)(((%s)i0 - (%s)%s) * (%s)i1);\n", type, type, zero ? "i2" : "0",
                  type);
    return;
  }
  const hone_dtype t = plan->operand[0].dtype;
  const int bits = 8 * (int)hone_dtype_size(t);
  const long span = 1l << bits, low = hone_dtype_is_signed_int(t) ? -span / 2 : 0;
  hn_str_printf(text,
                "    float q = rintf(i0 / i1) + %s;\n"
                "    o0 = (%s)(q > %ld.0f ? q < %ld.0f ? q : %ld.0f : %ld.0f);\n",
                zero ? "(float)i2" : "0.0f", hn_cuda_value(t), low, low + span - 1, low + span - 1, low);
}

bool hn_cuda_affine_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, NULL, why);
}

double hn_cuda_affine_cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

hone_status hn_cuda_affine_run(const hone_step_run *r, hone_error *error) {
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  void *at[1 + OPERANDS] = {r->out[0]};
  uint32_t n = 1;
  for (uint32_t i = 0; i < OPERANDS; i++)
    if (hn_cuda_has(r->step, i)) at[n++] = (void *)(uintptr_t)r->in[i];
  if (!describe(r->step, &plan, at, &why)) return hn_not_described(r->step, &why, error);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(r), r->step, &plan, body, at, error);
}
