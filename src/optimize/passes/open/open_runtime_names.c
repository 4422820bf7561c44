/* f of com.microsoft  ->  f of ONNX, where it is the same operator
 *
 * GridSample, QuantizeLinear, DequantizeLinear, Trilu, GatherND and Pad have the same operands (indices of
 * i32 become i64); RotaryEmbedding has the positions second, of which one number is the first token's, and
 * ConvTransposeWithDynamicPads the pads as an input, which may be constant all the same, as Pad has them,
 * whose numbers are attributes below opset 11. */
#include "optimize/passes/common/pass.h"

#include <math.h>
#include <string.h>

static hn_pass_result replaced(hn_pass_context *ctx, hone_node *n, hn_value *y) {
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "ONNX's own operator");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

/* The number of each token: `first`, and one more from token to token. */
static hn_value *all_positions(hn_pass_context *ctx, hone_node *n, hn_value *first, int64_t batch,
                               int64_t tokens) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){batch, tokens});
  void *data;
  hn_value *steps = hn_make_room(ctx, first->name, &d, &data);
  if (!steps) return NULL;
  for (int64_t i = 0; i < batch * tokens; i++) ((int64_t *)data)[i] = i % tokens;
  return hn_make_newest(ctx, n, "Add", (hn_value *const[]){steps, first}, 2, &d);
}

static hn_pass_result open_rotary(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *x = &n->in[0]->desc, *cos = &n->in[2]->desc;
  int64_t heads = hone_node_int(n, "num_heads", 0);
  if (!hone_desc_known(x) || !hone_desc_known(cos) || !hone_desc_known(&n->in[1]->desc))
    return hn_pass_miss(ctx, "shapes are not known");
  if (x->rank == 3 && !heads) heads = x->dim[2] / (2 * cos->dim[1]);
  hn_value *positions = n->in[1];
  if (positions->desc.rank == 1)
    positions = all_positions(ctx, n, positions, x->dim[0], x->dim[x->rank == 4 ? 2 : 1]);
  if (!positions) return HN_PASS_FAIL;
  hn_value *y = hn_make_newest(ctx, n, "RotaryEmbedding",
                               (hn_value *const[]){n->in[0], n->in[2], n->in[3], positions}, 4, x);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_set_int(y->producer, "num_heads", heads) ||
      !hn_node_set_int(y->producer, "interleaved", hone_node_int(n, "interleaved", 0)) ||
      !hn_node_set_int(y->producer, "rotary_embedding_dim", hone_node_int(n, "rotary_embedding_dim", 0)))
    return hn_pass_memory(ctx);
  return replaced(ctx, n, y);
}

static hn_pass_result open_pads(hn_pass_context *ctx, hone_node *n) {
  const hn_value *pads = n->n_in > 2 ? n->in[2] : NULL;
  if (pads && (!pads->constant || pads->desc.dtype != HONE_DTYPE_I64))
    return hn_pass_miss(ctx, "pads are not constant");
  hn_value *in[] = {n->in[0], n->in[1], n->n_in > 3 ? n->in[3] : NULL};
  hn_value *y = hn_make_newest(ctx, n, "ConvTranspose", in, in[2] ? 3 : 2, &n->out[0]->desc);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(y->producer, n) ||
      (pads && !hn_node_set_ints(y->producer, "pads", pads->constant->data,
                                 (size_t)hone_desc_count(&pads->constant->desc))))
    return hn_pass_memory(ctx);
  return replaced(ctx, n, y);
}

enum { OPERANDS = 4 };

/* A node of n's name with n's operands, or NULL. */
static hn_value *of_same_name(hn_pass_context *ctx, hone_node *n) {
  hn_value *in[OPERANDS];
  if (n->n_in > OPERANDS) return NULL;
  memcpy(in, n->in, n->n_in * sizeof *in);
  if (strcmp(n->op_type, "GatherND") == 0 && in[1]->desc.dtype == HONE_DTYPE_I32) {
    hone_tensor_desc d = in[1]->desc;
    d.dtype = HONE_DTYPE_I64;
    in[1] = hn_make_newest(ctx, n, "Cast", &in[1], 1, &d);
    if (!in[1] || !hn_node_set_int(in[1]->producer, "to", HONE_DTYPE_I64)) return NULL;
  }
  return hn_make_newest(ctx, n, n->op_type, in, n->n_in, &n->out[0]->desc);
}

/* Of opsets 2 to 10, of floats alone. */
static hn_pass_result open_old_pad(hn_pass_context *ctx, hone_node *n) {
  int64_t pads[2 * HONE_MAX_RANK];
  double value = 0;
  const int64_t count = hn_known_ints(n->in[1], pads, 2 * HONE_MAX_RANK);
  if (count < 0 || (hn_in(n, 2) && !hn_constant_scalar(n->in[2], &value)))
    return hn_pass_miss(ctx, "pads are not constant");
  if (!hone_dtype_is_float(n->in[0]->desc.dtype) || n->in[0]->desc.dtype == HONE_DTYPE_BF16)
    return hn_pass_miss(ctx, "Pad of %s came with opset 11", hone_dtype_name(n->in[0]->desc.dtype));
  if (!isnan(value) && ((double)(float)value != value || (value == 0 && signbit(value))))
    return hn_pass_miss(ctx, "the attribute 'value' of ONNX's Pad is f32, and not -0");
  hn_value *y = hn_make_newest(ctx, n, "Pad", n->in, 1, &n->out[0]->desc);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(y->producer, n) || !hn_node_set_ints(y->producer, "pads", pads, (size_t)count) ||
      (value != 0 && !hn_node_set_float(y->producer, "value", (float)value)))
    return hn_pass_memory(ctx);
  return replaced(ctx, n, y);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  if (strcmp(n->op_type, "RotaryEmbedding") == 0) return open_rotary(ctx, n);
  if (strcmp(n->op_type, "ConvTransposeWithDynamicPads") == 0) return open_pads(ctx, n);
  static const struct {
    const char *name;
    int64_t opset; /* from which on ONNX has it so */
  } same[] = {{"GridSample", 16}, {"QuantizeLinear", 13}, {"DequantizeLinear", 13},
              {"Trilu", 14},      {"GatherND", 11},       {"Pad", 11}};
  size_t i = 0;
  while (i < sizeof same / sizeof *same && strcmp(n->op_type, same[i].name) != 0) i++;
  if (i == sizeof same / sizeof *same) return HN_PASS_NONE;
  const int64_t opset = hn_model_opset(ctx->model, "");
  const char *mode = hone_node_string(n, "mode", "");
  const bool pads = strcmp(n->op_type, "Pad") == 0, wraps = pads && strcmp(mode, "wrap") == 0;
  if (pads && !wraps && opset < 11 && opset >= 2) return open_old_pad(ctx, n);
  if (opset < (wraps ? 19 : same[i].opset))
    return hn_pass_miss(ctx, "opset %lld has it otherwise", (long long)opset);
  const bool grid = i == 0; /* below opset 20 by its own words */
  hn_value *y = of_same_name(ctx, n);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(y->producer, n)) return hn_pass_memory(ctx);
  if (grid && !hn_node_attr(n, "mode") && !hn_node_set_string(y->producer, "mode", "bilinear", 8))
    return hn_pass_memory(ctx);
  return replaced(ctx, n, y);
}

HN_PASS(open_runtime_names) = {
    .name = "open_runtime_names",
    .level = 1,
    .about = "GridSample, QuantizeLinear, RotaryEmbedding... of com.microsoft -> ONNX's own",
    .visit = visit,
    .roots = HN_ROOTS("RotaryEmbedding", "GridSample", "QuantizeLinear", "DequantizeLinear", "Trilu",
                      "GatherND", "Pad", "ConvTransposeWithDynamicPads"),
};
