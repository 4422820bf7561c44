#include "backends/cuda/normalize/arg.h"

#include "backends/cuda/normalize/arg_args.h"
#include "backends/cuda/normalize/walk.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "optimize/step/axes.h"

enum { THREADS = 128 };

static bool make(const hone_step *s, hn_arg_args *a, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  int64_t stride[HONE_MAX_RANK], outputs;
  *a = (hn_arg_args){0};
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_value(x->dtype) || y->dtype != HONE_DTYPE_I64)
    return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  if (s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (y->layout == HONE_LAYOUT_CHANNELS_LAST) return hn_refuse(why, "the output is channels-last");
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
  if (x->dim[axis] < 1 || x->dim[axis] > INT32_MAX) return hn_refuse(why, "the axis is empty or too long");
  const uint32_t axes = 1u << axis, all = (1u << x->rank) - 1u;
  if (!hn_cuda_reduced_strides(x, y, axes, stride, why) ||
      !hn_cuda_walk(&a->kept, x->rank, x->dim, x->stride, stride, all & ~axes, &outputs, why))
    return false;
  a->step = x->stride[axis], a->length = (u32)x->dim[axis], a->outputs = (u32)outputs;
  return true;
}

bool hn_cuda_arg_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_arg_config *config,
                         hone_reason *why) {
  hn_arg_args a;
  (void)m, (void)config;
  return make(s, &a, why);
}

double hn_cuda_arg_cost(const hone_step *s, const hone_machine *m, const hn_cuda_arg_config *config) {
  (void)config;
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops / 8, hn_cuda_bytes(s), 0.5);
}

hone_status hn_cuda_arg_run(const hone_step_run *r, const hn_cuda_arg_config *config, hone_error *error) {
  const hone_step *s = r->step;
  hn_arg_args a;
  hone_reason why = {""};
  if (!make(s, &a, &why)) return hn_not_described(s, &why, error);
  a.x = r->in[0], a.y = r->out[0];
  const hone_dtype x = s->input[0].desc.dtype;
  int group = 1; /* one thread where neighbours read neighbours, else up to a warp */
  if (a.step == 1 || a.outputs < 4096)
    while (group < 32 && (u32)group * 4 < a.length) group *= 2;
  hn_str text = {0};
  hn_str_printf(
      &text, "#define HN_TYPE %s\n#define HN_VALUE %s\n#define HN_GROUP %d\n#define HN_LAST_INDEX %d\n",
      hone_dtype_name(x), hn_cuda_value(x), group, hone_node_int(s->node, "select_last_index", 0) != 0);
  /* NaN is above everything. */
  hn_str_printf(&text, "#define HN_BETTER(a, b) (%s)\n",
                config->largest ? "(a) > (b) || ((a) != (a) && (b) == (b))"
                                : "(a) < (b) || ((b) != (b) && (a) == (a))");
  const hone_status status = hn_cuda_launch_line(hn_cuda_queue_of(r), "arg", &text, "hn_arg",
                                                 (int64_t)a.outputs * group, THREADS, &a, sizeof a, error);
  hn_str_free(&text);
  return status;
}
