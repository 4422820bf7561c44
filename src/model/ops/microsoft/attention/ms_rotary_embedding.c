/* RotaryEmbedding of com.microsoft: ONNX's, with the positions as second input, of which one number is the
 * first token's. Heads without `num_heads` are as wide as the caches say. */
#include "model/ops/attention/heads.h"
#include "model/ops/microsoft/attention/rotary_inner.h"

enum { X, POSITIONS, COS, SIN };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *p = io->input[POSITIONS];
  hn_inner inner;
  hone_status s = hn_rotary_check(io->node, error);
  if (!s) s = hn_infer_dtype_in(io, POSITIONS, HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  hn_rotary_begin(&inner, io->node, x, io->input[COS]);
  const int64_t tokens = x->rank == 4 ? x->dim[2] : hn_dim(x, 1);
  const hone_tensor_desc all = hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){hn_dim(x, 0), tokens});
  hone_infer view = *io;
  view.input = (const hone_tensor_desc *const[]){x, io->input[COS], io->input[SIN], p->rank == 1 ? &all : p};
  if (hone_node_int(&inner.node, "num_heads", 0) == 0 && x->rank == 3)
    return hn_infer_set(io, 0, x->dtype, x->rank, x->dim), HONE_OK;
  return hn_inner_infer(&view, &inner, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 3 * hn_known_count(io->output[0]));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *p = call->input[POSITIONS];
  hone_tensor all;
  hn_inner inner;
  hn_rotary_begin(&inner, call->node, &x->desc, &call->input[COS]->desc);
  if (p->desc.rank == 1) {
    const int64_t dim[2] = {x->desc.dim[0], x->desc.rank == 4 ? x->desc.dim[2] : x->desc.dim[1]};
    if (!hn_inner_tensor(call, HONE_DTYPE_I64, 2, dim, &all, error)) return HONE_ERROR_MEMORY;
    const uint64_t first = (uint64_t)hn_get_i64(p, 0); /* any number: what is in no cache is refused below */
    for (int64_t i = 0; i < dim[0] * dim[1]; i++)
      ((int64_t *)all.data)[i] = (int64_t)(first + (uint64_t)(i % dim[1]));
    p = &all;
  }
  const hone_tensor *const in[4] = {x, call->input[COS], call->input[SIN], p};
  return hn_inner_run(call, &inner, in, 4, call->output, 1, error);
}

static const hone_attr_desc attrs[] = {{.name = "interleaved", .type = HONE_ATTR_INT},
                                       {.name = "num_heads", .type = HONE_ATTR_INT},
                                       {.name = "rotary_embedding_dim", .type = HONE_ATTR_INT},
                                       {.name = "is_packed_batching", .type = HONE_ATTR_INT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(ms_rotary_embedding) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "RotaryEmbedding",
                              .since = 1,
                              HN_INPUTS(4, 4),
                              HN_OUTPUTS(1, 1),
                              .types = HN_TYPES_FLOAT,
                              .attrs = attrs,
                              .infer = infer,
                              .cost = cost,
                              .reference = reference};
