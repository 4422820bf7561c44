/* Operators of com.microsoft whose meaning is that of ONNX operators: their references call those. */
#ifndef HN_MODEL_OPS_MICROSOFT_INNER_H
#define HN_MODEL_OPS_MICROSOFT_INNER_H

#include "model/ir/graph.h"
#include "model/ops/common/bulk.h"

enum { HN_INNER_ATTRS = 12 };

/* A node of another operator that stands for one of com.microsoft within a call. Not to be copied: the node
 * points into it. */
typedef struct hn_inner {
  hone_node node;
  hn_attr attr[HN_INNER_ATTRS];
} hn_inner;

/* Without attributes; opset: as which `op` is meant. */
void hn_inner_begin(hn_inner *inner, const hone_node *outer, const hone_op_desc *op, int32_t opset);
/* The same with all attributes of the outer node. */
void hn_inner_same(hn_inner *inner, const hone_node *outer, const hone_op_desc *op, int32_t opset);
void hn_inner_int(hn_inner *inner, const char *name, int64_t v);
void hn_inner_float(hn_inner *inner, const char *name, float v);

/* Inference of the outer operator as if it were the inner one, with the same operands. */
hone_status hn_inner_infer(const hone_infer *io, const hn_inner *inner, hone_error *error);
void hn_inner_cost(const hone_infer *io, const hn_inner *inner, hone_cost *cost);
/* Runs the inner operator's reference. */
hone_status hn_inner_run(hone_call *call, const hn_inner *inner, const hone_tensor *const *in, uint32_t n_in,
                         hone_tensor *const *out, uint32_t n_out, hone_error *error);

/* The reference of an operator on f16 and bf16, computed in f32 and rounded once at the end: no step between
 * is anything that users see. Tensors of other types are passed on as they are. */
hone_status hn_inner_wide(hone_call *call, hone_status (*reference)(hone_call *call, hone_error *error),
                          hone_error *error);

/* A tensor in scratch memory. False: *error is filled. */
bool hn_inner_tensor(hone_call *call, hone_dtype dtype, int32_t rank, const int64_t *dim, hone_tensor *out,
                     hone_error *error);
/* x with its dimensions in another order. */
bool hn_inner_transpose(hone_call *call, const hone_tensor *x, const int64_t *perm, hone_tensor *out,
                        hone_error *error);
/* [N, D1..., C] <-> [N, C, D1...], as descriptors and as orders of dimensions. */
hone_tensor_desc hn_channels_first(const hone_tensor_desc *last);
hone_tensor_desc hn_channels_last(const hone_tensor_desc *first);
void hn_channels_first_perm(int32_t rank, int64_t *perm);
void hn_channels_last_perm(int32_t rank, int64_t *perm);

/* An operator whose inputs 0 and output 0 are channels last, as the inner one with the channels first. */
hone_status hn_inner_infer_last(const hone_infer *io, const hn_inner *inner, hone_error *error);
hone_status hn_inner_run_last(hone_call *call, const hn_inner *inner, hone_error *error);

/* Dimension i, where it is known. */
static inline int64_t hn_dim(const hone_tensor_desc *d, int32_t i) {
  return d && d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN;
}
static inline bool hn_dims_differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

/* HONE_ERROR_INPUT unless input i, called `name`, has these dimensions, as far as they are known (a left-out
 * input passes). */
hone_status hn_infer_dims(const hone_infer *io, uint32_t i, const char *name, int32_t rank,
                          const int64_t *dim, hone_error *error);

/* The whole file of an operator that is ONNX's of the same name, as opset `as` has it; `attributes` is its
 * table of attributes. */
#define HN_SAME_OP(unit, type, standard, as, least, most, dtypes, attributes, ...)                           \
  extern const hone_op_desc hn_op_##standard;                                                                \
  static hone_status infer(const hone_infer *io, hone_error *error) {                                        \
    hn_inner n;                                                                                              \
    hn_inner_same(&n, io->node, &hn_op_##standard, as);                                                      \
    return hn_inner_infer(io, &n, error);                                                                    \
  }                                                                                                          \
  static void cost(const hone_infer *io, hone_cost *c) {                                                     \
    hn_inner n;                                                                                              \
    hn_inner_same(&n, io->node, &hn_op_##standard, as);                                                      \
    hn_inner_cost(io, &n, c);                                                                                \
  }                                                                                                          \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    hn_inner n;                                                                                              \
    hn_inner_same(&n, call->node, &hn_op_##standard, as);                                                    \
    return hn_inner_run(call, &n, call->input, call->n_inputs, call->output, call->n_outputs, error);        \
  }                                                                                                          \
  HN_OP(unit) = {HONE_DESC_HEAD(hone_op_desc),                                                               \
                 .domain = "com.microsoft",                                                                  \
                 .op_type = type,                                                                            \
                 .since = 1,                                                                                 \
                 HN_INPUTS(least, most),                                                                     \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = dtypes,                                                                            \
                 .attrs = attributes,                                                                        \
                 .infer = infer,                                                                             \
                 .cost = cost,                                                                               \
                 .reference = reference,                                                                     \
                 __VA_ARGS__}

#endif
