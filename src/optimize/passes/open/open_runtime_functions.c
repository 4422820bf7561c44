/* BiasAdd(x, b, skip)          ->  x + b + skip
 * BiasSplitGelu(x, b)          ->  left * Gelu(right)          the halves of the rows of x + b
 * BiasSoftmax(x, b)            ->  Softmax(x + b)
 * GemmFastGelu(x, w, b)        ->  FastGelu(x w + b)
 * SwiGLU(g, u)                 ->  g * Sigmoid(alpha g) * (u + beta), both within limits
 * GatedRMSNorm(x, scale, gate) ->  RMSNormalization(x, scale) * gate * Sigmoid(gate)
 *
 * What ONNX Runtime fused for its kernels: spelled out, so that lowering fuses it as it does elsewhere. */
#include "model/ops/microsoft/common/inner.h"
#include "optimize/passes/common/pass.h"

static hn_value *make(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                      const hone_tensor_desc *like) {
  for (uint32_t i = 0; i < n_in; i++)
    if (!in[i]) return NULL;
  return hn_make_newest(ctx, n, op, in, n_in, like);
}

static hn_value *two(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *a, hn_value *b,
                     const hone_tensor_desc *like) {
  return make(ctx, n, op, (hn_value *const[]){a, b}, 2, like);
}

static hn_value *with_int(hn_pass_context *ctx, hn_value *v, const char *name, int64_t i) {
  if (v && !hn_node_set_int(v->producer, name, i)) return hn_pass_memory(ctx), NULL;
  return v;
}

static hn_pass_result finish(hn_pass_context *ctx, hone_node *n, hn_value *v) {
  if (!v) return ctx->status ? HN_PASS_FAIL : hn_pass_memory(ctx);
  hn_pass_hit(ctx, "%s, spelled out", n->op_type);
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

/* The columns of v from `from` on, `size` of them. */
static hn_value *columns(hn_pass_context *ctx, hone_node *n, hn_value *v, int64_t from, int64_t size,
                         const hone_tensor_desc *like) {
  const int64_t end = from + size, axis = v->desc.rank - 1;
  return make(ctx, n, "Slice",
              (hn_value *const[]){v, hn_make_ints(ctx, v->name, &from, 1),
                                  hn_make_ints(ctx, v->name, &end, 1), hn_make_ints(ctx, v->name, &axis, 1)},
              4, like);
}

static hn_pass_result split_gelu(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *y = &n->out[0]->desc;
  if (y->rank < 1 || y->dim[y->rank - 1] < 1) return hn_pass_miss(ctx, "the width is not known");
  const int64_t half = y->dim[y->rank - 1];
  hn_value *sum = two(ctx, n, "Add", n->in[0], n->in[1], &n->in[0]->desc);
  hn_value *left = sum ? columns(ctx, n, sum, 0, half, y) : NULL,
           *right = left ? columns(ctx, n, sum, half, half, y) : NULL;
  hn_value *open = right ? make(ctx, n, "Gelu", &right, 1, y) : NULL;
  return finish(ctx, n, open ? two(ctx, n, "Mul", left, open, y) : NULL);
}

/* The bias as it broadcasts to the scores by ONNX's rules; NULL: it does not. */
static hn_value *broadcasting(hn_pass_context *ctx, hone_node *n, int64_t axis) {
  const hone_tensor_desc *x = &n->in[0]->desc, *b = &n->in[1]->desc;
  const bool inner = hone_node_int(n, "is_inner_broadcast", 0) != 0;
  int64_t dim[HONE_MAX_RANK], given = hone_desc_count(b) / hn_dims(x, (int32_t)axis, x->rank);
  /* inner: the first dimensions are there, those before the axis are 1; else the other way round. */
  for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  for (int32_t k = 0; k < axis; k++) {
    const int32_t i = inner ? k : (int32_t)axis - 1 - k;
    if (given == 1)
      dim[i] = 1;
    else if (given % x->dim[i])
      return NULL;
    else
      given /= x->dim[i];
  }
  if (given != 1) return NULL;
  const hone_tensor_desc like = hone_desc(b->dtype, x->rank, dim);
  return two(ctx, n, "Reshape", n->in[1], hn_make_ints(ctx, n->in[1]->name, dim, x->rank), &like);
}

static hn_pass_result softmax(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *x = &n->in[0]->desc;
  int64_t axis = hone_node_int(n, "axis", 1);
  if (!hone_desc_known(x) || !hone_desc_known(&n->in[1]->desc) || hone_desc_count(x) < 1)
    return hn_pass_miss(ctx, "a shape is not known, or empty");
  if (axis < 0) axis += x->rank;
  if (axis != x->rank - 1) return hn_pass_miss(ctx, "several dimensions are one row");
  hn_value *b = broadcasting(ctx, n, axis);
  if (!b)
    return ctx->status ? HN_PASS_FAIL : hn_pass_miss(ctx, "the bias repeats otherwise than by dimensions");
  hn_value *sum = two(ctx, n, "Add", n->in[0], b, x);
  return finish(ctx, n, with_int(ctx, sum ? make(ctx, n, "Softmax", &sum, 1, x) : NULL, "axis", axis));
}

static hn_pass_result fast_gelu(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *y = &n->out[0]->desc;
  hn_value *v = two(ctx, n, "MatMul", n->in[0], n->in[1], y);
  if (v && hn_in(n, 2)) v = two(ctx, n, "Add", v, n->in[2], y);
  if (v) v = make(ctx, n, "Gelu", &v, 1, y);
  if (v && !hn_node_set_string(v->producer, "approximate", "tanh", 4)) return hn_pass_memory(ctx);
  return finish(ctx, n, v);
}

static hn_value *shaped(hn_pass_context *ctx, hone_node *n, hn_value *v, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, dim);
  return two(ctx, n, "Reshape", v, hn_make_ints(ctx, v->name, dim, rank), &like);
}

static hn_pass_result rms_norm(hn_pass_context *ctx, hone_node *n) {
  hn_value *x = n->in[0], *gate = n->in[2];
  const hone_tensor_desc d = x->desc, *scale = &n->in[1]->desc;
  if (!hone_desc_known(&d) || !hone_desc_known(scale) || hone_desc_count(&d) < 1 || d.rank == HONE_MAX_RANK)
    return hn_pass_miss(ctx, "a shape is not known, or empty");
  const int64_t c = scale->dim[0], last = d.dim[d.rank - 1];
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < d.rank - 1; i++) dim[i] = d.dim[i];
  dim[d.rank - 1] = last / c, dim[d.rank] = c;
  if (last != c) x = shaped(ctx, n, x, d.rank + 1, dim);
  hn_value *y = x ? two(ctx, n, "RMSNormalization", x, n->in[1], &x->desc) : NULL;
  y = with_int(ctx, y, "axis", -1);
  if (y && !hn_node_set_float(y->producer, "epsilon", hone_node_float(n, "epsilon", 1e-5f)))
    return hn_pass_memory(ctx);
  if (y && last != c) y = shaped(ctx, n, y, d.rank, d.dim);
  hn_value *open = y ? make(ctx, n, "Sigmoid", &gate, 1, &d) : NULL;
  if (open && strcmp(hone_node_string(n, "activation", "silu"), "sigmoid") != 0)
    open = two(ctx, n, "Mul", gate, open, &d);
  return finish(ctx, n, open ? two(ctx, n, "Mul", y, open, &d) : NULL);
}

static hn_value *by_number(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *v, double number) {
  const hone_tensor_desc one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  return v ? two(ctx, n, op, v, hn_make_floats(ctx, n->name, &one, &number), &v->desc) : NULL;
}

static hn_pass_result swiglu(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *y = &n->out[0]->desc;
  const double limit = (double)hone_node_float(n, "limit", 0);
  const float alpha = hone_node_float(n, "activation_alpha", 1),
              beta = hone_node_float(n, "activation_beta", 0);
  hn_value *gate = n->in[0], *up = hn_in(n, 1);
  if (y->rank < 0 || (!up && y->dim[y->rank - 1] < 1)) return hn_pass_miss(ctx, "the width is not known");
  if (!up) {
    const int64_t half = y->dim[y->rank - 1];
    gate = columns(ctx, n, n->in[0], 0, half, y);
    up = gate ? columns(ctx, n, n->in[0], half, half, y) : NULL;
  }
  if (limit > 0) {
    gate = by_number(ctx, n, "Min", gate, limit);
    up = by_number(ctx, n, "Max", by_number(ctx, n, "Min", up, limit), -limit);
  }
  hn_value *open = alpha != 1 ? by_number(ctx, n, "Mul", gate, (double)alpha) : gate;
  if (open) open = make(ctx, n, "Sigmoid", &open, 1, y);
  if (open) open = two(ctx, n, "Mul", gate, open, y);
  if (beta != 0) up = by_number(ctx, n, "Add", up, (double)beta);
  return finish(ctx, n, open && up ? two(ctx, n, "Mul", open, up, y) : NULL);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || !hn_same_name(n->domain, "com.microsoft")) return HN_PASS_NONE;
  if (hn_model_opset(ctx->model, "") < 10 || !n->n_in || !n->in[0]) return HN_PASS_NONE; /* Slice by inputs */
  if (n->in[0]->desc.dtype != HONE_DTYPE_F32) return HN_PASS_NONE;
  if (strcmp(n->op_type, "BiasAdd") == 0) {
    hn_value *sum = two(ctx, n, "Add", n->in[0], n->in[1], &n->out[0]->desc);
    return finish(ctx, n, sum ? two(ctx, n, "Add", sum, n->in[2], &n->out[0]->desc) : NULL);
  }
  if (strcmp(n->op_type, "BiasSplitGelu") == 0) return split_gelu(ctx, n);
  if (strcmp(n->op_type, "BiasSoftmax") == 0) return softmax(ctx, n);
  if (strcmp(n->op_type, "GemmFastGelu") == 0) return fast_gelu(ctx, n);
  if (strcmp(n->op_type, "SwiGLU") == 0) return swiglu(ctx, n);
  return strcmp(n->op_type, "GatedRMSNorm") == 0 ? rms_norm(ctx, n) : HN_PASS_NONE;
}

HN_PASS(open_runtime_functions) = {
    .name = "open_runtime_functions",
    .level = 1,
    .about = "BiasAdd, BiasSplitGelu, BiasSoftmax, GemmFastGelu, SwiGLU, GatedRMSNorm of com.microsoft -> "
             "their parts",
    .visit = visit,
};
