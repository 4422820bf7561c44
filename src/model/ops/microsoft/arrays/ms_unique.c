/* Unique of a vector: its elements in the order in which they come first, where each element went, and how
 * often each is there. ONNX's operator has these results, unsorted, and one more. No NaN is another's equal
 * here, as in ONNX Runtime. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/search/unique.h"

enum { Y, PLACES, COUNTS, RESULTS, ALL = 4 };

extern const hone_op_desc hn_op_unique;

static void begin(hn_inner *n, const hone_node *node) {
  hn_inner_begin(n, node, &hn_op_unique, 11);
  hn_inner_int(n, "sorted", 0);
  hn_inner_int(n, HN_UNIQUE_NAN_APART, 1);
}

static hone_status as_inner(const hone_infer *io, bool most, hone_error *error) {
  hn_inner n;
  begin(&n, io->node);
  if (io->input[0]->rank >= 0 && io->input[0]->rank != 1)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 1", (int)io->input[0]->rank);
  hone_tensor_desc *out[ALL] = {io->output[Y], NULL, io->n_outputs > PLACES ? io->output[PLACES] : NULL,
                                io->n_outputs > COUNTS ? io->output[COUNTS] : NULL};
  const hone_infer view = {&n.node, 1, ALL, io->input, io->value, out};
  return (most ? hn_op_unique.most : hn_op_unique.infer)(&view, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) { return as_inner(io, false, error); }
static hone_status most(const hone_infer *io, hone_error *error) { return as_inner(io, true, error); }

/* What the inner call makes lies in scratch memory: its outputs are not this operator's. */
static hone_status alloc_inner(hone_call *call, uint32_t i, const hone_tensor_desc *d, hone_error *error) {
  hone_tensor *t = call->output[i];
  if (!t) return HONE_OK;
  t->desc = *d;
  t->data = hn_scratch(call, hone_desc_count(d), hone_dtype_size(d->dtype), error);
  return t->data ? HONE_OK : HONE_ERROR_MEMORY;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner n;
  begin(&n, call->node);
  hone_tensor made[ALL] = {0};
  hone_tensor *out[ALL] = {&made[0], NULL, &made[2], &made[3]};
  hone_call inner = *call;
  inner.alloc_output = alloc_inner;
  hone_status status = hn_inner_run(&inner, &n, call->input, 1, out, ALL, error);
  for (uint32_t i = 0; i < RESULTS && i < call->n_outputs && !status; i++) {
    const hone_tensor *from = i == Y ? &made[0] : &made[i + 1];
    if (!call->output[i]) continue;
    status = call->alloc_output(call, i, &from->desc, error);
    if (!status) hn_copy_elements(call->output[i]->data, from->data, hn_count(from), from->desc.dtype);
  }
  return status;
}

HN_OP(ms_unique) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "Unique",
                    .since = 1,
                    .flags = HONE_OP_DATA_DEPENDENT,
                    HN_INPUTS(1, 1),
                    HN_OUTPUTS(1, 3),
                    .types = HN_TYPES_ALL,
                    .infer = infer,
                    .most = most,
                    .reference = reference};
