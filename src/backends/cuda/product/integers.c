#include "backends/cuda/product/integers.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/ops/product/batch.h"
#include "model/ops/conv/conv_core.h"

static bool eight_bits(hone_dtype t) { return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8; }

/* Names the operands, and how many values each parameter has: 0 for none. */
static bool name_operands(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                          hone_reason *why) {
  const struct {
    const char *name;
    int input;
  } list[] = {{"A", at->a},
              {"A_SCALE", at->a_scale},
              {"A_ZERO", at->a_zero},
              {"B", at->b},
              {"B_SCALE", at->b_scale},
              {"B_ZERO", at->b_zero},
              {"Y_SCALE", at->y_scale},
              {"Y_ZERO", at->y_zero},
              {"BIAS", at->bias}};
  /* Units of several nodes have these anchors, too; they are faster as what they were. */
  if (strcmp(hone_node_op(s->node), s->anchor) != 0) return hn_refuse(why, "a part of a float network");
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    char name[32];
    if (list[i].input < 0 || !hn_cuda_has(s, (uint32_t)list[i].input)) continue;
    snprintf(name, sizeof name, "HN_%s", list[i].name);
    hn_cuda_direct_define(p, name, list[i].input);
  }
  if (!eight_bits(s->input[at->a].desc.dtype) || !eight_bits(s->input[at->b].desc.dtype))
    return hn_refuse(why, "operands are not of 8 bits");
  const hone_dtype y = s->output[0].desc.dtype;
  if (at->y_scale >= 0) {
    if (!eight_bits(y)) return hn_refuse(why, "the output is %s", hone_dtype_name(y));
    hn_cuda_direct_define(p, "HN_LOW", y == HONE_DTYPE_I8 ? -128 : 0);
    hn_cuda_direct_define(p, "HN_HIGH", y == HONE_DTYPE_I8 ? 127 : 255);
  }
  p->text = "integers";
  return true;
}

static int64_t values(const hone_step *s, int input) {
  return input >= 0 && hn_cuda_has(s, (uint32_t)input) ? hone_desc_count(&s->input[input].desc) : 0;
}

bool hn_cuda_integer_conv(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                          hone_reason *why) {
  hn_conv c;
  const hone_tensor_desc *y = &s->output[0].desc;
  if (!name_operands(s, at, p, why)) return false;
  if (hn_conv_init(&c, s->node, &s->input[at->a].desc, &s->input[at->b].desc, NULL) != HONE_OK)
    return hn_refuse(why, "a convolution that does not fit");
  i64 *n = p->args.p;
  n[0] = c.groups, n[1] = c.channels, n[2] = c.filters;
  n[3] = values(s, at->b_zero) > 1, n[4] = values(s, at->b_scale) > 1;
  for (int d = 0; d < 3; d++) {
    n[8 + d] = c.window.in[d], n[12 + d] = c.window.out[d], n[16 + d] = c.window.kernel[d];
    n[20 + d] = c.window.stride[d], n[24 + d] = c.window.dilation[d], n[28 + d] = c.window.pad[d];
  }
  hn_cuda_direct_define(p, "HN_CONVOLUTION", 1);
  hn_cuda_direct_add(p, "hn_integer_conv", hone_desc_count(y), 0);
  return true;
}

bool hn_cuda_integer_matmul(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                            hone_reason *why) {
  const hone_tensor_desc *a = &s->input[at->a].desc, *b = &s->input[at->b].desc;
  const int lists[] = {at->a_zero, at->a_scale, at->b_zero, at->b_scale};
  hn_batch t;
  if (!name_operands(s, at, p, why)) return false;
  if (a->rank < 1 || b->rank < 1) return hn_refuse(why, "an operand of rank 0");
  hn_batch_make(&t, a, b);
  if (t.rank > 8) return hn_refuse(why, "more than 8 dimensions in the stack");
  i64 *n = p->args.p;
  n[0] = t.m, n[1] = t.n, n[2] = t.k, n[3] = t.rank;
  for (int32_t d = 0; d < t.rank; d++) n[8 + d] = t.dim[d], n[16 + d] = t.a[d], n[24 + d] = t.b[d];
  /* Parameters: one value, one a line, or one a line of every matrix; steps of line and matrix. */
  for (int i = 0; i < 4; i++) {
    const int64_t count = values(s, lists[i]), lines = i < 2 ? t.m : t.n;
    if (count > 1 && (lines == 0 || count % lines))
      return hn_refuse(why, "%lld parameters", (long long)count);
    n[32 + 2 * i] = count > 1, n[33 + 2 * i] = count > lines ? lines : 0;
  }
  hn_cuda_direct_add(p, "hn_integer_matmul", t.count * t.m * t.n, 0);
  return true;
}
