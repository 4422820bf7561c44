/* MoE: a mixture of experts whose weights are plain numbers. */
#include "model/ops/microsoft/experts/moe.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_experts e;
  if (!hn_has_input(io, HN_MOE_FC2)) return hn_op_bad(io->node, error, "fc2_experts_weights are left out");
  hone_status s = hn_experts_of(io->node, &e, error);
  if (!s) s = hn_experts_tokens(io, &e, error);
  for (uint32_t i = HN_MOE_ROUTER; i <= HN_MOE_B3 && !s; i++) s = hn_infer_same_dtype(io, HN_MOE_X, i, error);
  if (s) return s;
  const bool third = hn_has_input(io, HN_MOE_FC3);
  if (third && e.pairs != HN_EXPERT_ONE)
    return hn_op_bad(io->node, error, "swiglu_fusion leaves nothing for fc3_experts_weights");
  if (e.act == HN_EXPERT_SWIGLU && e.pairs == HN_EXPERT_ONE && !third)
    return hn_op_bad(io->node, error, "swiglu has neither swiglu_fusion nor fc3_experts_weights");
  if (!third && hn_has_input(io, HN_MOE_B3))
    return hn_op_bad(io->node, error, "fc3_experts_bias stands without its weights");
  const int64_t inter = hn_dim(io->input[HN_MOE_FC2], 2),
                wide = inter < 0 ? inter : inter * hn_experts_fusion(&e);
  const int64_t first[3] = {e.experts, wide, e.hidden}, second[3] = {e.experts, e.hidden, inter},
                more[3] = {e.experts, inter, e.hidden};
  s = hn_infer_dims(io, HN_MOE_FC1, "fc1_experts_weights", 3, first, error);
  if (!s) s = hn_infer_dims(io, HN_MOE_FC2, "fc2_experts_weights", 3, second, error);
  if (!s) s = hn_infer_dims(io, HN_MOE_FC3, "fc3_experts_weights", 3, more, error);
  if (!s) s = hn_infer_dims(io, HN_MOE_B1, "fc1_experts_bias", 2, first, error);
  if (!s) s = hn_infer_dims(io, HN_MOE_B2, "fc2_experts_bias", 2, second, error);
  if (!s) s = hn_infer_dims(io, HN_MOE_B3, "fc3_experts_bias", 2, more, error);
  return s ? s : hn_infer_same(io, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t experts = hn_dim(io->input[HN_MOE_ROUTER], 1), tokens = hn_dim(io->input[HN_MOE_ROUTER], 0);
  double weights = 0;
  for (uint32_t i = HN_MOE_FC1; i <= HN_MOE_FC3; i += 2)
    if (hn_has_input(io, i)) weights += hn_known_count(io->input[i]);
  if (experts > 0 && tokens > 0)
    hn_cost_macs(cost, weights / (double)experts * (double)tokens * (double)hone_node_int(io->node, "k", 1));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *const *in = call->input;
  hn_experts e;
  const hone_status s = hn_experts_of(call->node, &e, error);
  if (s) return s;
  e.third = hn_call_has(call, HN_MOE_FC3);
  e.tokens = in[HN_MOE_ROUTER]->desc.dim[0], e.experts = in[HN_MOE_ROUTER]->desc.dim[1];
  e.hidden = in[HN_MOE_FC2]->desc.dim[1], e.inter = in[HN_MOE_FC2]->desc.dim[2];
  hn_expert_matrix m[3] = {{0}};
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t at = HN_MOE_FC1 + 2 * i;
    if (!hn_call_has(call, at)) continue;
    m[i] = (hn_expert_matrix){.codes = in[at],
                              .bias = hn_call_has(call, at + 1) ? in[at + 1] : NULL,
                              .rows = in[at]->desc.dim[1],
                              .columns = in[at]->desc.dim[2]};
  }
  return hn_experts_run(call, &e, m, NULL, error);
}

static const hone_attr_desc attrs[] = {HN_EXPERT_ATTRS, {0}};

HN_OP(moe) = {HONE_DESC_HEAD(hone_op_desc),
              .domain = "com.microsoft",
              .op_type = "MoE",
              .since = 1,
              HN_INPUTS(3, 8),
              HN_OUTPUTS(1, 1),
              .types = HN_TYPES_FLOAT,
              .attrs = attrs,
              .infer = infer,
              .cost = cost,
              .reference = reference};
