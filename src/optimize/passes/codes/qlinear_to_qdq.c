/* f on codes  ->  QuantizeLinear(f(DequantizeLinear(x), ...))
 *
 * Operators of com.microsoft that are a float operator on codes (hone_float_form), and QGemm: spelled out as
 * ONNX has them, so that one way leads from quantised graphs to steps on codes. So is a MaxPool of codes: its
 * result has the codes of its operand. And a QLinearMatMul of two activations, as attention has it: sums in
 * i32 want constant weights. */
#include "optimize/passes/common/pass.h"

static hone_tensor_desc floats_like(const hn_value *v) {
  return hone_desc(HONE_DTYPE_F32, v->desc.rank, v->desc.dim);
}

/* zero may be NULL; axis < 0: one scale. */
static hn_value *dequantised(hn_pass_context *ctx, hone_node *n, hn_value *x, hn_value *scale, hn_value *zero,
                             int64_t axis) {
  const hone_tensor_desc like = floats_like(x);
  hone_node *dq =
      hn_make_node(ctx, n, "DequantizeLinear", (hn_value *const[]){x, scale, zero}, zero ? 3 : 2, &like);
  if (!dq || !hn_inherit(ctx, dq, n)) return NULL;
  if (axis >= 0 && !hn_node_set_int(dq, "axis", axis)) return hn_pass_memory(ctx), NULL;
  return dq->out[0];
}

/* The node's result becomes the codes of f. */
static hn_pass_result finish(hn_pass_context *ctx, hone_node *n, hn_value *f, hn_value *scale,
                             hn_value *zero) {
  hn_value *y = n->out[0], *with = f;
  if (scale) {
    const hone_dtype type = y->desc.dtype;
    const hone_tensor_desc one = hone_desc(type, 0, NULL);
    if (!zero && type != HONE_DTYPE_U8 && !(zero = hn_make_constant(ctx, y->name, &one, &(const uint8_t){0})))
      return HN_PASS_FAIL;
    hone_node *q =
        hn_make_node(ctx, n, "QuantizeLinear", (hn_value *const[]){f, scale, zero}, zero ? 3 : 2, &y->desc);
    if (!q || !hn_inherit(ctx, q, n)) return HN_PASS_FAIL;
    with = q->out[0];
  }
  hn_pass_hit(ctx, "codes -> numbers -> codes");
  if (!hn_replace(ctx, y, with)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

/* ---- operators with a float form */

/* Attributes that the definition of the model's opset has as inputs, or has not. */
static bool adapt(hn_pass_context *ctx, hone_node *made) {
  hn_node_drop_attr(made, "opset");
  hn_node_drop_attr(made, "channels_last");
  const hn_attr *axes = hn_is_op(made, "ReduceMean") && made->opset >= 18 ? hn_node_attr(made, "axes") : NULL;
  if (!axes) return true;
  hn_value *v = hn_make_ints(ctx, made->name, axes->list.ptr, (int64_t)axes->list.n);
  hn_node_drop_attr(made, "axes");
  return v && hn_set_input(ctx, made, 1, v);
}

static hn_pass_result open_form(hn_pass_context *ctx, hone_node *n, const hone_float_form *f) {
  const uint32_t operands = f->operands ? f->operands : (n->n_in - f->first + 1) / 3,
                 all = f->plain + operands;
  const int64_t opset = hn_model_opset(ctx->model, "");
  if (hone_node_int(n, "channels_last", 0)) return HN_PASS_NONE; /* open_channels_last did not take it */
  if (!f->opset && (hone_node_int(n, "opset", 0) < 13) != (opset < 13))
    return hn_pass_miss(ctx, "%s is meant as of another opset than the model's", f->op->op_type);
  if (!hn_can_replace(n->out[0], n->in[f->first]) || !hn_has_op(ctx, f->op->op_type) ||
      !hn_has_op(ctx, "DequantizeLinear"))
    return hn_pass_miss(ctx, "opset %lld has no %s on codes", (long long)opset, f->op->op_type);
  hn_value **in = HN_NEW_ARRAY(ctx->scratch, hn_value *, all);
  if (!in) return hn_pass_memory(ctx);
  for (uint32_t i = 0; i < f->plain; i++) in[i] = n->in[i];
  for (uint32_t k = 0; k < operands; k++) {
    const uint32_t at = f->first + 3 * k;
    in[f->plain + k] = dequantised(ctx, n, n->in[at], n->in[at + 1], hn_in(n, at + 2), -1);
    if (!in[f->plain + k]) return HN_PASS_FAIL;
  }
  const hone_tensor_desc like = floats_like(n->out[0]);
  hone_node *made = hn_make_node(ctx, n, f->op->op_type, in, all, &like);
  if (!made || !hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(made, n)) return hn_pass_memory(ctx);
  if (!adapt(ctx, made)) return HN_PASS_FAIL;
  return finish(ctx, n, made->out[0], n->in[f->y], hn_in(n, f->y + 1u));
}

/* ---- QGemm */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

/* What one of C's integers is worth: alpha a_scale b_scale, one number or one a column. */
static hn_value *unit_of_c(hn_pass_context *ctx, const hone_node *n) {
  const hone_tensor *a = hn_known(n->in[A_SCALE]), *b = hn_known(n->in[B_SCALE]);
  const int64_t count = hone_desc_count(&b->desc);
  const float alpha = hone_node_float(n, "alpha", 1);
  double *unit = HN_NEW_ARRAY(ctx->scratch, double, count);
  if (!unit) return hn_pass_memory(ctx), NULL;
  for (int64_t i = 0; i < count; i++)
    unit[i] = (double)(alpha * *(const float *)a->data * ((const float *)b->data)[i]);
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, count > 1, &count);
  return hn_make_floats(ctx, n->in[C]->name, &d, unit);
}

static hn_pass_result open_gemm(hn_pass_context *ctx, hone_node *n) {
  const hn_value *c = hn_in(n, C);
  const bool transposed = hone_node_int(n, "transB", 0) != 0;
  const int64_t scales = hone_desc_count(&n->in[B_SCALE]->desc);
  if (hn_in(n, B_ZERO) && hone_desc_count(&n->in[B_ZERO]->desc) != scales)
    return hn_pass_miss(ctx, "the weights have another number of scales than of zero points");
  if (!hn_known(n->in[A_SCALE]) || !hn_known(n->in[B_SCALE])) return hn_pass_miss(ctx, "a scale is computed");
  if (!hn_has_op(ctx, "DequantizeLinear") || (scales != 1 && hn_model_opset(ctx->model, "") < 13))
    return hn_pass_miss(ctx, "the opset has no codes with a scale a column");
  if (c && scales > 1 && (c->desc.rank < 1 || c->desc.dim[c->desc.rank - 1] != scales))
    return hn_pass_miss(ctx, "the bias has fewer columns than scales");
  const int64_t columns = scales > 1 ? !transposed : -1;
  hn_value *in[3] = {dequantised(ctx, n, n->in[A], n->in[A_SCALE], n->in[A_ZERO], -1), NULL, NULL};
  if (in[0]) in[1] = dequantised(ctx, n, n->in[B], n->in[B_SCALE], n->in[B_ZERO], columns);
  if (!in[1]) return HN_PASS_FAIL;
  if (c) {
    hn_value *unit = unit_of_c(ctx, n);
    in[2] = unit ? dequantised(ctx, n, n->in[C], unit, NULL, scales > 1 ? c->desc.rank - 1 : -1) : NULL;
    if (!in[2]) return HN_PASS_FAIL;
  }
  const hone_tensor_desc like = floats_like(n->out[0]);
  hone_node *made = hn_make_node(ctx, n, "Gemm", in, c ? 3 : 2, &like);
  if (!made || !hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(made, n)) return hn_pass_memory(ctx);
  return finish(ctx, n, made->out[0], hn_in(n, Y_SCALE), hn_in(n, Y_ZERO));
}

/* ---- MaxPool */

/* Scale and zero point of the codes that a node makes, by which v's values are known; false: unknown. */
static bool made_with(const hn_value *v, hn_value **scale, hn_value **zero) {
  const hone_node *p = v->producer;
  if (!p || !p->op || p->out[0] != v) return false;
  for (const hone_codes_port *k = p->op->ports; k && k->scale; k++)
    if (k->tensor == HONE_CODES_RESULT) {
      *scale = hn_in(p, k->scale), *zero = hn_in(p, k->zero);
      return hn_known(*scale) && hone_desc_count(&(*scale)->desc) == 1 && (!*zero || hn_known(*zero));
    }
  return false;
}

static hn_pass_result open_max_pool(hn_pass_context *ctx, hone_node *n) {
  hn_value *x = n->in[0], *scale, *zero;
  const hone_dtype t = x->desc.dtype;
  double step;
  if ((t != HONE_DTYPE_U8 && t != HONE_DTYPE_I8) || n->n_out != 1 || !made_with(x, &scale, &zero) ||
      !hn_constant_scalar(scale, &step) || !(step > 0) || /* the largest code has the largest value */
      !hn_has_op(ctx, "DequantizeLinear"))
    return HN_PASS_NONE;
  hn_value *in = dequantised(ctx, n, x, scale, zero, -1);
  const hone_tensor_desc like = floats_like(n->out[0]);
  hone_node *made = in ? hn_make_node(ctx, n, "MaxPool", &in, 1, &like) : NULL;
  if (!made || !hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(made, n)) return hn_pass_memory(ctx);
  return finish(ctx, n, made->out[0], scale, zero);
}

/* ---- QLinearMatMul */

static hn_pass_result open_product(hn_pass_context *ctx, hone_node *n) {
  enum { M_A, M_A_SCALE, M_A_ZERO, M_B, M_B_SCALE, M_B_ZERO, M_Y_SCALE, M_Y_ZERO };
  static const uint8_t single[] = {M_A_SCALE, M_A_ZERO, M_B_SCALE, M_B_ZERO, M_Y_SCALE, M_Y_ZERO};
  if (hn_known(n->in[M_B])) return HN_PASS_NONE;
  for (size_t i = 0; i < sizeof single; i++)
    if (hone_desc_count(&n->in[single[i]]->desc) != 1 || n->in[single[i]]->desc.rank > 1)
      return hn_pass_miss(ctx, "'%.60s' is not one number", n->in[single[i]]->name);
  for (uint32_t i = M_A; i <= M_Y_SCALE; i++)
    if ((i == M_A_SCALE || i == M_B_SCALE || i == M_Y_SCALE) && n->in[i]->desc.dtype != HONE_DTYPE_F32)
      return hn_pass_miss(ctx, "'%.60s' is not f32", n->in[i]->name);
  if (!hn_has_op(ctx, "DequantizeLinear")) return HN_PASS_NONE;
  hn_value *in[2] = {dequantised(ctx, n, n->in[M_A], n->in[M_A_SCALE], n->in[M_A_ZERO], -1), NULL};
  if (in[0]) in[1] = dequantised(ctx, n, n->in[M_B], n->in[M_B_SCALE], n->in[M_B_ZERO], -1);
  if (!in[1]) return HN_PASS_FAIL;
  const hone_tensor_desc like = floats_like(n->out[0]);
  hone_node *made = hn_make_node(ctx, n, "MatMul", in, 2, &like);
  if (!made || !hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
  return finish(ctx, n, made->out[0], n->in[M_Y_SCALE], n->in[M_Y_ZERO]);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op) return HN_PASS_NONE;
  if (hn_is_op(n, "QLinearMatMul")) return open_product(ctx, n);
  if (hn_is_op(n, "MaxPool")) return open_max_pool(ctx, n);
  if (!*n->domain) return HN_PASS_NONE;
  if (n->op->float_form) return open_form(ctx, n, n->op->float_form);
  return strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, "QGemm") == 0 ? open_gemm(ctx, n)
                                                                                     : HN_PASS_NONE;
}

HN_PASS(qlinear_to_qdq) = {
    .name = "qlinear_to_qdq",
    .level = 1,
    .about = "QLinearAdd, QGemm... of com.microsoft, MaxPool and products of codes -> DequantizeLinear, "
             "operator, QuantizeLinear",
    .visit = visit,
};
