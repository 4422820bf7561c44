/* ScatterND: a copy of the data in which updates replace, or are combined with, the slices that tuples of
 * indices name. */
#include "model/ops/common/bulk.h"
#include "model/ops/indexing/combine.h"
#include "model/ops/indexing/tuples.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[1], *update = io->input[2];
  int64_t n;
  hn_combine how;
  hone_status status = hn_tuples_infer(io, 0, &n, error);
  if (!status) status = hn_infer_same_dtype(io, 0, 2, error);
  if (!status) status = hn_combine_of(io->node, &how, error);
  if (status) return status;
  if (n >= 0 && update->rank >= 0) {
    bool fits = update->rank == index->rank - 1 + x->rank - n;
    for (int32_t i = 0; fits && i < update->rank; i++) {
      int64_t want = i < index->rank - 1 ? index->dim[i] : x->dim[n + i - (index->rank - 1)];
      fits = want < 0 || update->dim[i] < 0 || want == update->dim[i];
    }
    if (!fits)
      return hn_op_bad(io->node, error, "updates do not have the shape of the slices that indices name");
  }
  return hn_infer_same(io, error);
}

static hone_status visit(hone_call *call, void *context, int64_t place, int64_t at, int64_t slice,
                         hone_error *error) {
  hone_dtype t = call->input[0]->desc.dtype;
  size_t size = hone_dtype_size(t);
  return hn_combine_apply(call->node, *(const hn_combine *)context, t,
                          (char *)call->output[0]->data + (size_t)at * size,
                          (const char *)call->input[2]->data + (size_t)(place * slice) * size, slice, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_combine how;
  hone_status status = hn_combine_of(call->node, &how, error);
  if (status) return status;
  hn_copy_elements(call->output[0]->data, call->input[0]->data, hn_count(call->input[0]),
                   call->input[0]->desc.dtype);
  return hn_tuples_run(call, 0, visit, &how, error);
}

static const hone_attr_desc attrs[] = {{.name = "reduction", .type = HONE_ATTR_STRING, .since = 16}, {0}};

HN_OP(scatter_nd) = {HN_OP_HEAD,      .op_type = "ScatterND", .since = 11,
                     HN_INPUTS(3, 3), HN_OUTPUTS(1, 1),       .types = HN_TYPES_ALL,
                     .attrs = attrs,  .infer = infer,         .reference = reference};
