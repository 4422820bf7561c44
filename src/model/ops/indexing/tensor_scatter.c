/* TensorScatter: a cache in which a run of slices along `axis` is replaced, for every sample from its write
 * index on; in mode "circular" the run goes on at the beginning. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { CACHE, UPDATE, INDICES };

static hone_status check_node(const hone_node *node, int32_t rank, int32_t *axis, hone_error *error) {
  const char *mode = hone_node_string(node, "mode", "linear");
  *axis = 0;
  if (strcmp(mode, "linear") && strcmp(mode, "circular"))
    return hn_op_bad(node, error, "mode is \"%s\"", mode);
  if (rank < 0) return HONE_OK;
  const hone_status s = hn_axis(hone_node_int(node, "axis", -2), rank, axis, error);
  return s || *axis ? s : hn_op_bad(node, error, "axis is 0, the dimension of the samples");
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[CACHE], *u = io->input[UPDATE];
  int32_t axis;
  hone_status s = check_node(io->node, x->rank, &axis, error);
  if (!s) s = hn_infer_same_dtype(io, CACHE, UPDATE, error);
  if (!s) s = hn_infer_dtype_in(io, INDICES, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_vector(io, INDICES, x->rank > 0 ? x->dim[0] : HONE_DIM_UNKNOWN, error);
  if (s) return s;
  if (x->rank >= 0 && u->rank >= 0 && x->rank != u->rank)
    return hn_op_bad(io->node, error, "the cache has rank %d, the update %d", (int)x->rank, (int)u->rank);
  for (int32_t i = 0; i < x->rank && u->rank >= 0; i++)
    if (x->dim[i] >= 0 && u->dim[i] >= 0 && (i == axis ? u->dim[i] > x->dim[i] : u->dim[i] != x->dim[i]))
      return hn_op_bad(io->node, error, "dimension %d of the cache is %lld, of the update %lld", (int)i,
                       (long long)x->dim[i], (long long)u->dim[i]);
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[CACHE], *u = call->input[UPDATE];
  const bool circular = !strcmp(hone_node_string(call->node, "mode", "linear"), "circular");
  int32_t axis;
  const hone_status s = check_node(call->node, x->desc.rank, &axis, error);
  if (s) return s;
  const int64_t most = x->desc.dim[axis], n = u->desc.dim[axis];
  const int64_t outer = hn_dims(&x->desc, 1, axis), inner = hn_dims(&x->desc, axis + 1, x->desc.rank);
  const size_t slice = (size_t)inner * hone_dtype_size(x->desc.dtype);
  hn_copy_elements(call->output[0]->data, x->data, hn_count(x), x->desc.dtype);
  for (int64_t b = 0; b < x->desc.dim[0]; b++) {
    const int64_t first = hn_call_has(call, INDICES) ? hn_get_i64(call->input[INDICES], b) : 0;
    if (first < 0 || (!circular && first > most - n))
      return hn_op_bad(call->node, error, "write index %lld: %lld slices do not fit into %lld",
                       (long long)first, (long long)n, (long long)most);
    for (int64_t o = 0; o < outer && slice; o++)
      for (int64_t k = 0; k < n; k++) {
        const int64_t to = circular ? (int64_t)(((uint64_t)first + (uint64_t)k) % (uint64_t)most) : first + k;
        memcpy((char *)call->output[0]->data + (size_t)((b * outer + o) * most + to) * slice,
               (const char *)u->data + (size_t)((b * outer + o) * n + k) * slice, slice);
      }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "axis", .type = HONE_ATTR_INT}, {.name = "mode", .type = HONE_ATTR_STRING}, {0}};

HN_OP(tensor_scatter) = {
    HN_OP_HEAD,      .op_type = "TensorScatter", .since = 24,           .flags = HONE_OP_MOVE,
    HN_INPUTS(2, 3), HN_OUTPUTS(1, 1),           .types = HN_TYPES_ALL, .attrs = attrs,
    .infer = infer,  .reference = reference};
