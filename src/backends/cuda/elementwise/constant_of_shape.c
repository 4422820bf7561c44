/* ConstantOfShape of a shape that is known when the step is planned. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"
#include "model/ops/common/convert.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor *value = hone_node_tensor(s->node, "value");
  const bool real = hone_dtype_is_float(s->output[0].desc.dtype);
  if (value && hone_dtype_is_float(value->desc.dtype) != real)
    return hn_refuse(why, "a %s value", hone_dtype_name(value->desc.dtype));
  if (value && real) p->args.f[0] = hn_get_f64(value, 0);
  if (value && !real) p->args.p[0] = hn_get_i64(value, 0);
  p->text = "fill";
  hn_cuda_direct_define(p, "HN_FLOATING", real);
  hn_cuda_direct_add(p, "hn_fill", hone_desc_count(&s->output[0].desc), 0);
  return true;
}

hn_cuda_direct_tactic(constant_of_shape, "ConstantOfShape", plan);
