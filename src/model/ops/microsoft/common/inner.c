/* Calls of ONNX operators from within references of com.microsoft's (inner.h). */
#include "model/ops/microsoft/common/inner.h"

#include "base/fault.h"
#include "base/half.h"
#include "base/mem.h"

extern const hone_op_desc hn_op_transpose;

void hn_inner_begin(hn_inner *inner, const hone_node *outer, const hone_op_desc *op, int32_t opset) {
  inner->node = *outer;
  inner->node.domain = "";
  inner->node.op = op;
  inner->node.op_type = op->op_type;
  inner->node.opset = opset;
  inner->node.n_attr = 0;
  inner->node.attr = inner->attr;
}

void hn_inner_same(hn_inner *inner, const hone_node *outer, const hone_op_desc *op, int32_t opset) {
  hn_inner_begin(inner, outer, op, opset);
  inner->node.n_attr = outer->n_attr;
  inner->node.attr = outer->attr;
}

void hn_inner_int(hn_inner *inner, const char *name, int64_t v) {
  if (inner->node.n_attr < HN_INNER_ATTRS)
    inner->attr[inner->node.n_attr++] = (hn_attr){.name = name, .type = HONE_ATTR_INT, .i = v};
}

void hn_inner_float(hn_inner *inner, const char *name, float v) {
  if (inner->node.n_attr < HN_INNER_ATTRS)
    inner->attr[inner->node.n_attr++] = (hn_attr){.name = name, .type = HONE_ATTR_FLOAT, .f = v};
}

hone_status hn_inner_infer(const hone_infer *io, const hn_inner *inner, hone_error *error) {
  hone_infer view = *io;
  view.node = &inner->node;
  return inner->node.op->infer(&view, error);
}

void hn_inner_cost(const hone_infer *io, const hn_inner *inner, hone_cost *cost) {
  hone_infer view = *io;
  view.node = &inner->node;
  if (inner->node.op->cost)
    inner->node.op->cost(&view, cost);
  else
    hn_cost_flops(cost, hn_known_count(io->output[0]));
}

hone_status hn_inner_run(hone_call *call, const hn_inner *inner, const hone_tensor *const *in, uint32_t n_in,
                         hone_tensor *const *out, uint32_t n_out, hone_error *error) {
  hone_call view = *call;
  view.node = &inner->node;
  view.n_inputs = n_in;
  view.n_outputs = n_out;
  view.input = in;
  view.output = out;
  return inner->node.op->reference(&view, error);
}

bool hn_inner_tensor(hone_call *call, hone_dtype dtype, int32_t rank, const int64_t *dim, hone_tensor *out,
                     hone_error *error) {
  *out = (hone_tensor){.desc = hone_desc(dtype, rank, dim)};
  out->data = hn_scratch(call, hone_desc_count(&out->desc), hone_dtype_size(dtype), error);
  return out->data != NULL;
}

static bool is_narrow(const hone_tensor *t) {
  return t && (t->desc.dtype == HONE_DTYPE_F16 || t->desc.dtype == HONE_DTYPE_BF16);
}

static void narrow(hone_tensor *y, const float *x) {
  const bool half = y->desc.dtype == HONE_DTYPE_F16;
  uint16_t *to = y->data;
  for (int64_t i = 0, n = hone_desc_count(&y->desc); i < n; i++)
    to[i] = half ? hn_f32_to_f16(x[i]) : hn_f32_to_bf16(x[i]);
}

enum { MOST_INPUTS = 16, MOST_OUTPUTS = 8 };

hone_status hn_inner_wide(hone_call *call, hone_status (*reference)(hone_call *call, hone_error *error),
                          hone_error *error) {
  hone_tensor wide[MOST_INPUTS], made[MOST_OUTPUTS], *out[MOST_OUTPUTS];
  const hone_tensor *in[MOST_INPUTS];
  hone_call view = *call;
  bool any = false;
  if (call->n_inputs > MOST_INPUTS || call->n_outputs > MOST_OUTPUTS) return reference(call, error);
  for (uint32_t i = 0; i < call->n_outputs; i++) any |= is_narrow(call->output[i]);
  if (!any || HN_FAULT("inner_narrow")) return reference(call, error);
  for (uint32_t i = 0; i < call->n_inputs; i++) {
    const hone_tensor *x = in[i] = call->input[i];
    if (!is_narrow(x)) continue;
    if (!hn_inner_tensor(call, HONE_DTYPE_F32, x->desc.rank, x->desc.dim, &wide[i], error))
      return HONE_ERROR_MEMORY;
    hn_load_f32(wide[i].data, x, 0, hone_desc_count(&x->desc));
    in[i] = &wide[i];
  }
  for (uint32_t i = 0; i < call->n_outputs; i++) {
    const hone_tensor *y = out[i] = call->output[i];
    if (!is_narrow(y)) continue;
    if (!hn_inner_tensor(call, HONE_DTYPE_F32, y->desc.rank, y->desc.dim, &made[i], error))
      return HONE_ERROR_MEMORY;
    out[i] = &made[i];
  }
  view.input = in;
  view.output = out;
  const hone_status s = reference(&view, error);
  for (uint32_t i = 0; i < call->n_outputs && !s; i++)
    if (out[i] != call->output[i]) narrow(call->output[i], made[i].data);
  return s;
}

bool hn_inner_transpose(hone_call *call, const hone_tensor *x, const int64_t *perm, hone_tensor *out,
                        hone_error *error) {
  hn_inner n;
  int64_t dim[HONE_MAX_RANK];
  const int32_t rank = x->desc.rank;
  for (int32_t i = 0; i < rank; i++) dim[i] = x->desc.dim[perm[i]];
  hn_inner_begin(&n, call->node, &hn_op_transpose, 13);
  n.attr[0] = (hn_attr){.name = "perm", .type = HONE_ATTR_INTS, .list = {(size_t)rank, perm}};
  n.node.n_attr = 1;
  return hn_inner_tensor(call, x->desc.dtype, rank, dim, out, error) &&
         hn_inner_run(call, &n, &x, 1, (hone_tensor *const[]){out}, 1, error) == HONE_OK;
}

hone_status hn_infer_dims(const hone_infer *io, uint32_t i, const char *name, int32_t rank,
                          const int64_t *dim, hone_error *error) {
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  if (!d || d->rank < 0) return HONE_OK;
  bool fits = d->rank == rank;
  for (int32_t k = 0; k < rank && fits; k++) fits = !hn_dims_differ(d->dim[k], dim[k]);
  char have[96], want[96];
  const hone_tensor_desc expected = hone_desc(d->dtype, rank, dim);
  return fits ? HONE_OK
              : hn_op_bad(io->node, error, "%s is %s, expected %s", name,
                          hone_desc_format(d, have, sizeof have),
                          hone_desc_format(&expected, want, sizeof want));
}

void hn_channels_first_perm(int32_t rank, int64_t *perm) {
  for (int32_t i = 0; i < rank; i++) perm[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}

void hn_channels_last_perm(int32_t rank, int64_t *perm) {
  for (int32_t i = 0; i < rank; i++) perm[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
}

static hone_tensor_desc in_order(const hone_tensor_desc *d, void (*order)(int32_t, int64_t *)) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  if (d->rank < 2) return *d;
  order(d->rank, perm);
  for (int32_t i = 0; i < d->rank; i++) dim[i] = d->dim[perm[i]];
  return hone_desc(d->dtype, d->rank, dim);
}

hone_tensor_desc hn_channels_first(const hone_tensor_desc *last) {
  return in_order(last, hn_channels_first_perm);
}
hone_tensor_desc hn_channels_last(const hone_tensor_desc *first) {
  return in_order(first, hn_channels_last_perm);
}

hone_status hn_inner_infer_last(const hone_infer *io, const hn_inner *inner, hone_error *error) {
  const hone_tensor_desc *in[MOST_INPUTS];
  hone_tensor_desc x = hn_channels_first(io->input[0]), y = {.rank = -1}, *out = &y;
  if (io->n_inputs > MOST_INPUTS) return hn_op_bad(io->node, error, "%u inputs", io->n_inputs);
  for (uint32_t i = 0; i < io->n_inputs; i++) in[i] = i ? io->input[i] : &x;
  hone_infer view = *io;
  view.node = &inner->node;
  view.input = in;
  view.n_outputs = 1;
  view.output = &out;
  const hone_status s = inner->node.op->infer(&view, error);
  if (s) return s;
  y = hn_channels_last(&y);
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

hone_status hn_inner_run_last(hone_call *call, const hn_inner *inner, hone_error *error) {
  const hone_tensor *in[MOST_INPUTS], *from;
  hone_tensor x, y, back, *out = &y;
  int64_t perm[HONE_MAX_RANK];
  const hone_tensor_desc first = hn_channels_first(&call->output[0]->desc);
  for (uint32_t i = 0; i < call->n_inputs && i < MOST_INPUTS; i++) in[i] = i ? call->input[i] : &x;
  hn_channels_first_perm(call->input[0]->desc.rank, perm);
  if (!hn_inner_transpose(call, call->input[0], perm, &x, error) ||
      !hn_inner_tensor(call, first.dtype, first.rank, first.dim, &y, error))
    return HONE_ERROR_MEMORY;
  const hone_status s = hn_inner_run(call, inner, in, call->n_inputs, &out, 1, error);
  if (s) return s;
  hn_channels_last_perm(first.rank, perm);
  from = &y;
  if (!hn_inner_transpose(call, from, perm, &back, error)) return HONE_ERROR_MEMORY;
  memcpy(call->output[0]->data, back.data, (size_t)hone_desc_bytes(&back.desc));
  return HONE_OK;
}
