/* QMoE: a mixture of experts whose weights are codes of 2, 4 or 8 bits, low bits first, with a scale (and
 * zero point) for each row or each block of a row. router_weights, where given, are what the answers are
 * weighed by; the scores then only choose. */
#include "model/ops/microsoft/experts/q_moe.h"

enum {
  X = HN_QMOE_X,
  ROUTER,
  FC1 = HN_QMOE_FC1,
  FC2 = HN_QMOE_FC2,
  FC3 = HN_QMOE_FC3,
  ZEROS = HN_QMOE_ZEROS,
  WEIGHTS = HN_QMOE_WEIGHTS
};

int64_t hn_q_moe_bits(const hone_node *node, int which) {
  static const char *const name[3] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                      "fc3_expert_weight_bits"};
  return hone_node_int(node, name[which], hone_node_int(node, "expert_weight_bits", 4));
}

static hone_status attributes(const hone_node *node, hn_experts *e, int64_t *block, hone_error *error) {
  hone_status s = hn_experts_of(node, e, error);
  *block = hone_node_int(node, "block_size", 0);
  const char *type = hone_node_string(node, "quant_type", "int");
  if (s) return s;
  if (strcmp(type, "int") != 0) return hn_op_refuse(node, error, "quant_type '%s'", type);
  if (hone_node_int(node, "weights_prepacked", -1) == 1)
    return hn_op_refuse(node, error, "weights_prepacked, which is a layout of one GPU");
  if (*block < 0 || (*block > 0 && (*block < 16 || (*block & (*block - 1)))))
    return hn_op_bad(node, error, "block_size is %lld", (long long)*block);
  for (int i = 0; i < 3; i++) {
    const int64_t bits = hn_q_moe_bits(node, i);
    if (bits != 2 && bits != 4 && bits != 8)
      return hn_op_refuse(node, error, "codes of %lld bits", (long long)bits);
  }
  return HONE_OK;
}

/* Matrix `which` of rows x columns: its codes, scales, zero points and bias. */
static hone_status check_matrix(const hone_infer *io, int which, int64_t experts, int64_t rows,
                                int64_t columns, int64_t block, hone_error *error) {
  const uint32_t codes = FC1 + 3 * (uint32_t)which, scales = codes + 1, bias = codes + 2,
                 zeros = ZEROS + (uint32_t)which;
  const int64_t bits = hn_q_moe_bits(io->node, which), open = HONE_DIM_UNKNOWN;
  if (!hn_has_input(io, scales)) return hn_op_bad(io->node, error, "input %u, scales, is left out", scales);
  if (columns >= 0 && (columns * bits % 8 || (block && columns % block)))
    return hn_op_bad(io->node, error, "rows of %lld codes of %lld bits, in blocks of %lld",
                     (long long)columns, (long long)bits, (long long)block);
  const int64_t bytes = columns < 0 ? open : columns * bits / 8,
                blocks = columns < 0 || !block ? open : columns / block,
                row_zeros = rows < 0 ? open : (rows * bits + 7) / 8,
                block_zeros = blocks < 0 ? open : (blocks * bits + 7) / 8;
  hone_status s = hn_infer_dtype_in(io, codes, HONE_TYPES(HONE_DTYPE_U8), error);
  if (!s) s = hn_infer_dtype_in(io, zeros, HONE_TYPES(HONE_DTYPE_U8), error);
  if (!s) s = hn_infer_dtype_in(io, scales, HN_TYPES_FLOAT, error);
  if (!s) s = hn_infer_same_dtype(io, X, bias, error);
  if (!s) s = hn_infer_dims(io, codes, "the codes", 3, (const int64_t[]){experts, rows, bytes}, error);
  if (!s)
    s = hn_infer_dims(io, scales, "the scales", block ? 3 : 2, (const int64_t[]){experts, rows, blocks},
                      error);
  if (!s)
    s = hn_infer_dims(io, zeros, "the zero points", block ? 3 : 2,
                      (const int64_t[]){experts, block ? rows : row_zeros, block_zeros}, error);
  return s ? s : hn_infer_dims(io, bias, "the bias", 2, (const int64_t[]){experts, rows}, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_experts e;
  int64_t block;
  hone_status s = attributes(io->node, &e, &block, error);
  if (!s) s = hn_experts_tokens(io, &e, error);
  if (!s) s = hn_infer_same_dtype(io, X, ROUTER, error);
  if (!s) s = hn_infer_same_dtype(io, X, WEIGHTS, error);
  if (s) return s;
  if (e.mixer && hn_has_input(io, WEIGHTS))
    return hn_op_refuse(io->node, error, "use_sparse_mixer beside router_weights");
  const bool third = hn_has_input(io, FC3);
  if (!hn_has_input(io, FC2)) return hn_op_bad(io->node, error, "fc2_experts_weights are left out");
  if (third && e.pairs != HN_EXPERT_ONE)
    return hn_op_bad(io->node, error, "swiglu_fusion leaves nothing for fc3_experts_weights");
  if (e.act == HN_EXPERT_SWIGLU && e.pairs == HN_EXPERT_ONE && !third)
    return hn_op_bad(io->node, error, "swiglu has neither swiglu_fusion nor fc3_experts_weights");
  const int64_t bytes = hn_dim(io->input[FC2], 2),
                inter = bytes < 0 ? bytes : bytes * 8 / hn_q_moe_bits(io->node, 1),
                wide = inter < 0 ? inter : inter * hn_experts_fusion(&e);
  s = check_matrix(io, 0, e.experts, wide, e.hidden, block, error);
  if (!s) s = check_matrix(io, 1, e.experts, e.hidden, inter, block, error);
  if (!s && third) s = check_matrix(io, 2, e.experts, inter, e.hidden, block, error);
  if (!s) s = hn_infer_dims(io, WEIGHTS, "router_weights", 2, (const int64_t[]){e.tokens, e.experts}, error);
  return s ? s : hn_infer_same(io, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t experts = hn_dim(io->input[ROUTER], 1), tokens = hn_dim(io->input[ROUTER], 0);
  double weights = 0;
  for (int i = 0; i < 3; i++)
    if (hn_has_input(io, FC1 + 3 * (uint32_t)i))
      weights += hn_known_count(io->input[FC1 + 3 * i]) * 8 / (double)hn_q_moe_bits(io->node, i);
  if (experts > 0 && tokens > 0)
    hn_cost_macs(cost, weights / (double)experts * (double)tokens * (double)hone_node_int(io->node, "k", 1));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *const *in = call->input;
  hn_experts e;
  int64_t block;
  const hone_status s = attributes(call->node, &e, &block, error);
  if (s) return s;
  e.third = hn_call_has(call, FC3);
  e.tokens = in[ROUTER]->desc.dim[0], e.experts = in[ROUTER]->desc.dim[1];
  e.hidden = in[FC2]->desc.dim[1];
  hn_expert_matrix m[3] = {{0}};
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t at = FC1 + 3 * i, zeros = ZEROS + i;
    if (!hn_call_has(call, at)) continue;
    m[i] = (hn_expert_matrix){.codes = in[at],
                              .scales = in[at + 1],
                              .zeros = hn_call_has(call, zeros) ? in[zeros] : NULL,
                              .bias = hn_call_has(call, at + 2) ? in[at + 2] : NULL,
                              .rows = in[at]->desc.dim[1],
                              .bits = hn_q_moe_bits(call->node, (int)i),
                              .block = block};
    m[i].columns = in[at]->desc.dim[2] * 8 / m[i].bits;
  }
  e.inter = m[1].columns;
  return hn_experts_run(call, &e, m, hn_call_has(call, WEIGHTS) ? in[WEIGHTS] : NULL, error);
}

static const hone_attr_desc attrs[] = {HN_EXPERT_ATTRS,
                                       {.name = "expert_weight_bits", .type = HONE_ATTR_INT},
                                       {.name = "fc1_expert_weight_bits", .type = HONE_ATTR_INT},
                                       {.name = "fc2_expert_weight_bits", .type = HONE_ATTR_INT},
                                       {.name = "fc3_expert_weight_bits", .type = HONE_ATTR_INT},
                                       {.name = "block_size", .type = HONE_ATTR_INT},
                                       {.name = "quant_type", .type = HONE_ATTR_STRING},
                                       {.name = "weights_prepacked", .type = HONE_ATTR_INT},
                                       {.name = "accuracy_level", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(q_moe) = {HONE_DESC_HEAD(hone_op_desc),
                .domain = "com.microsoft",
                .op_type = "QMoE",
                .since = 1,
                HN_INPUTS(3, 15),
                HN_OUTPUTS(1, 1),
                .types = HN_TYPES_FLOAT,
                .attrs = attrs,
                .infer = infer,
                .cost = cost,
                .reference = reference};
