/* FusedConv(x, w, b, z)  ->  f(Conv(x, w, b) + z)
 * FusedGemm(a, b, c)     ->  f(Gemm(a, b, c))
 * FusedMatMul(a, b)      ->  f(alpha MatMul(a', b'))      a' and b' with their dimensions in another order
 * BiasGelu(x, b)         ->  Gelu(x + b), and FastGelu likewise
 *
 * What ONNX Runtime fused when it wrote the file: spelled out, so that lowering fuses it as it does
 * elsewhere. */
#include "model/ops/microsoft/products/turned_matmul.h"
#include "optimize/passes/common/pass.h"

/* The node's activation of v. */
static hn_value *activated(hn_pass_context *ctx, hone_node *n, hn_value *v) {
  hn_fused_activation a;
  if (hn_fused_activation_of(n, &a, NULL) || !a.op) return v;
  const bool bounds = strcmp(a.op->op_type, "Clip") == 0 && hn_model_opset(ctx->model, "") >= 11;
  hn_value *in[3] = {v, NULL, NULL};
  const hone_tensor_desc one = hone_desc(v->desc.dtype, 0, NULL);
  for (int k = 0; k < 2 && bounds; k++)
    if (!(in[1 + k] = hn_make_floats(ctx, v->name, &one, &(const double){(double)a.value[k]}))) return NULL;
  hn_value *y = hn_make_newest(ctx, n, a.op->op_type, in, bounds ? 3 : 1, &v->desc);
  for (int k = 0; k < 2 && y && !bounds && a.name[k]; k++)
    if (!hn_node_set_float(y->producer, a.name[k], a.value[k])) return hn_pass_memory(ctx), NULL;
  return y;
}

static hn_pass_result finish(hn_pass_context *ctx, hone_node *n, hn_value *v) {
  if (v) v = activated(ctx, n, v);
  if (!v) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a product, and what is behind it");
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

/* The product itself, with the attributes that are its own. */
static hn_value *plain(hn_pass_context *ctx, hone_node *n, const char *op, uint32_t n_in) {
  static const char *const others[] = {"activation",      "activation_params", "activation_alpha",
                                       "activation_beta", "activation_gamma",  NULL};
  hn_value *v = hn_make_newest(ctx, n, op, n->in, n_in, &n->out[0]->desc);
  if (!v) return NULL;
  if (!hn_node_copy_attrs(v->producer, n)) return hn_pass_memory(ctx), NULL;
  for (const char *const *name = others; *name; name++) hn_node_drop_attr(v->producer, *name);
  return v;
}

static hn_value *turned(hn_pass_context *ctx, hone_node *n, int operand) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  hn_value *v = n->in[operand];
  const int32_t rank = v->desc.rank;
  if (!hn_turned_perm(n, operand, rank, perm)) return v;
  for (int32_t i = 0; i < rank; i++) dim[i] = v->desc.dim[perm[i]];
  const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, dim);
  hn_value *t = hn_make_newest(ctx, n, "Transpose", &v, 1, &like);
  if (t && !hn_node_set_ints(t->producer, "perm", perm, (size_t)rank)) return hn_pass_memory(ctx), NULL;
  return t;
}

static hn_value *matmul(hn_pass_context *ctx, hone_node *n) {
  const double alpha = (double)hone_node_float(n, "alpha", 1);
  const hone_tensor_desc *like = &n->out[0]->desc, one = hone_desc(n->in[0]->desc.dtype, 0, NULL);
  hn_value *a = turned(ctx, n, 0), *b = a ? turned(ctx, n, 1) : NULL;
  hn_value *v = b ? hn_make_newest(ctx, n, "MatMul", (hn_value *const[]){a, b}, 2, like) : NULL;
  if (!v || alpha == 1) return v;
  hn_value *by = hn_make_floats(ctx, v->name, &one, &alpha);
  return by ? hn_make_newest(ctx, n, "Mul", (hn_value *const[]){v, by}, 2, like) : NULL;
}

/* x + bias as the function's only operand: an operator of the same domain, without a bias. */
static hn_pass_result open_bias(hn_pass_context *ctx, hone_node *n) {
  if (n->in[0]->desc.rank < 1) return hn_pass_miss(ctx, "the rank is not known");
  hn_value *sum = hn_make_newest(ctx, n, "Add", n->in, 2, &n->out[0]->desc), *out = NULL;
  if (sum) out = hn_value_create(ctx->graph, NULL);
  if (!out) return hn_pass_memory(ctx);
  out->desc = n->out[0]->desc;
  const char *op = strcmp(n->op_type, "BiasGelu") == 0 ? "Gelu" : "FastGelu";
  hone_node *f = hn_node_create(ctx->graph, n, op, n->domain, NULL, &sum, 1, &out, 1);
  if (!f) return hn_pass_memory(ctx);
  f->op = hn_op_find(ctx->model->operators, n->domain, op, n->opset, NULL);
  if (!hn_inherit(ctx, f, n)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a sum, and a function of it");
  if (!hn_replace(ctx, n->out[0], out)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || !hn_same_name(n->domain, "com.microsoft")) return HN_PASS_NONE;
  const hone_dtype t = n->n_in && n->in[0] ? n->in[0]->desc.dtype : HONE_DTYPE_NONE;
  if (t != HONE_DTYPE_F32 && t != HONE_DTYPE_F64) return HN_PASS_NONE;
  if (strcmp(n->op_type, "FusedConv") == 0) {
    hn_value *v = plain(ctx, n, "Conv", n->n_in < 3 ? n->n_in : 3);
    if (v && hn_in(n, 3))
      v = hn_make_newest(ctx, n, "Add", (hn_value *const[]){v, n->in[3]}, 2, &n->out[0]->desc);
    return finish(ctx, n, v);
  }
  if (strcmp(n->op_type, "FusedGemm") == 0) return finish(ctx, n, plain(ctx, n, "Gemm", n->n_in));
  if (strcmp(n->op_type, "FusedMatMul") == 0 || strcmp(n->op_type, "TransposeMatMul") == 0 ||
      strcmp(n->op_type, "FusedMatMulActivation") == 0) {
    if (n->in[0]->desc.rank < 0 || n->in[1]->desc.rank < 0)
      return hn_pass_miss(ctx, "the rank of an operand is not known");
    return finish(ctx, n, matmul(ctx, n));
  }
  if (strcmp(n->op_type, "BiasGelu") == 0 || (strcmp(n->op_type, "FastGelu") == 0 && hn_in(n, 1)))
    return open_bias(ctx, n);
  return HN_PASS_NONE;
}

HN_PASS(open_fused_products) = {
    .name = "open_fused_products",
    .level = 1,
    .about = "FusedConv, FusedGemm, FusedMatMul, BiasGelu... of ONNX Runtime -> Conv, Add, the activation",
    .visit = visit,
};
