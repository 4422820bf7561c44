/* LinearAttention of com.microsoft, which decoders with Gated DeltaNet have (Qwen3-Next, Qwen3.5). */
#include "model/ops/attention/linear.h"

static const hone_attr_desc attrs[] = {{.name = "chunk_size", .type = HONE_ATTR_INT}, /* a hint */
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "q_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "state_window", .type = HONE_ATTR_INT},
                                       {.name = "update_rule", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(ms_linear_attention) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "LinearAttention",
                              .since = 1,
                              HN_INPUTS(3, 6),
                              HN_OUTPUTS(1, 2),
                              .types = HN_TYPES_FLOAT,
                              .attrs = attrs,
                              .infer = hn_linear_infer,
                              .cost = hn_linear_cost,
                              .reference = hn_linear_reference};
