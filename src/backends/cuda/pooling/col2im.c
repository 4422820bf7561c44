/* Col2Im with a constant shape of blocks: every output element gathers what blocks hold of it. */
#include "backends/cuda/step/direct.h"
#include "base/error.h"

enum { MAX_AXES = 6 };

static int64_t value(const hone_node *node, const char *name, int32_t at, int64_t otherwise) {
  size_t n = 0;
  const int64_t *v = hone_node_ints(node, name, &n);
  return (size_t)at < n ? v[at] : otherwise;
}

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  const int32_t axes = y->rank - 2;
  const int64_t *block = s->input[2].constant;
  if (!block || hone_desc_count(&s->input[2].desc) != axes || s->input[2].desc.dtype != HONE_DTYPE_I64)
    return hn_refuse(why, "block_shape is not constant");
  if (axes < 1 || axes > MAX_AXES) return hn_refuse(why, "%d spatial dimensions", (int)axes);
  p->text = "unpool";
  p->args.p[0] = axes, p->args.p[1] = 1, p->args.p[2] = s->input[0].desc.dim[2];
  for (int32_t d = 0; d < axes; d++) {
    const int64_t stride = value(s->node, "strides", d, 1), dilation = value(s->node, "dilations", d, 1);
    const int64_t begin = value(s->node, "pads", d, 0), end = value(s->node, "pads", axes + d, 0);
    p->args.p[4 + d] = y->dim[2 + d], p->args.p[12 + d] = block[d], p->args.p[1] *= block[d];
    p->args.p[20 + d] = (y->dim[2 + d] + begin + end - (block[d] - 1) * dilation - 1) / stride + 1;
    p->args.p[28 + d] = stride, p->args.p[34 + d] = dilation, p->args.p[40 + d] = begin;
  }
  hn_cuda_direct_add(p, "hn_col2im", hone_desc_count(y), 0);
  return true;
}

hn_cuda_direct_tactic(col2im, "Col2Im", plan);
