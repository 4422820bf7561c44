/* BitCast: the bits of every element as an element of another dtype of the same width. */
#include "model/ops/common/op.h"

static int width(hone_dtype d) { return hn_narrow_bits(d) ? hn_narrow_bits(d) : 8 * (int)hone_dtype_size(d); }

static hone_status infer(const hone_infer *io, hone_error *error) {
  const int64_t to = hone_node_int(io->node, "to", 0);
  const hone_tensor_desc *x = io->input[0];
  if (to <= 0 || to >= HONE_DTYPE_COUNT || to == HONE_DTYPE_STRING)
    return hn_op_refuse(io->node, error, "to dtype number %lld", (long long)to);
  if (x->dtype && width(x->dtype) != width((hone_dtype)to))
    return hn_op_bad(io->node, error, "%s and %s differ in width", hone_dtype_name(x->dtype),
                     hone_dtype_name((hone_dtype)to));
  hn_infer_set(io, 0, (hone_dtype)to, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_dtype from = call->input[0]->desc.dtype, to = call->output[0]->desc.dtype;
  const int64_t n = hn_count(call->input[0]);
  (void)error;
  hn_copy_elements(call->output[0]->data, call->input[0]->data, n, from);
  uint8_t *y = call->output[0]->data; /* the bits above an element's own follow its sign */
  for (int64_t i = 0; i < n && width(to) < 8; i++)
    y[i] = hn_narrow_is_float(to) ? (uint8_t)(y[i] & ((1u << width(to)) - 1)) : hn_narrow_from_i64(to, y[i]);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  (void)io;
  *cost = (hone_cost){.bytes = -1};
}

static const hone_attr_desc attrs[] = {{.name = "to", .type = HONE_ATTR_INT, .required = true}, {0}};

HN_OP(bit_cast) = {HN_OP_HEAD,       .op_type = "BitCast",
                   .since = 26,      HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1), .types = HN_TYPES_NUMBER | HN_TYPES_BOOL | HN_TYPES_NARROW,
                   .attrs = attrs,   .infer = infer,
                   .cost = cost,     .reference = reference};
