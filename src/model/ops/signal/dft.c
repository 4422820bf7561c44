/* DFT: the discrete Fourier transform along one axis of real ([..., 1]) or complex ([..., 2]) data; onesided
 * gives the half of a real signal's spectrum that determines it, and inverse with onesided the real signal of
 * such a half. */
#include "model/ops/signal/dft.h"

#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/signal/fourier.h"
#include "model/ops/common/move.h"

hone_status hn_dft_of(const hone_node *node, const hone_tensor_desc *x, const hone_tensor *length,
                      bool length_given, const hone_tensor *axis, hn_dft *p, hone_error *error) {
  bool by_attr = hone_node_opset(node) < 20;
  int64_t a = by_attr ? hone_node_int(node, "axis", 1) : axis ? hn_get_i64(axis, 0) : -2;
  p->inverse = hone_node_int(node, "inverse", 0) != 0;
  p->onesided = hone_node_int(node, "onesided", 0) != 0;
  p->parts = p->inverse && p->onesided ? 1 : 2;
  if (x->rank < 2) return hn_op_bad(node, error, "the input has rank %d", x->rank);
  hone_status status = hn_axis(a, x->rank, &p->axis, error);
  if (status) return status;
  if (p->axis == x->rank - 1) return hn_op_bad(node, error, "the last dimension holds the numbers' parts");
  int64_t parts = x->dim[x->rank - 1], have = x->dim[p->axis];
  if (parts >= 0 && parts != 1 && parts != 2)
    return hn_op_bad(node, error, "the last dimension is %lld, not 1 or 2", (long long)parts);
  if (p->onesided && !p->inverse && parts == 2) return hn_op_bad(node, error, "onesided needs real data");
  p->n = length                     ? hn_get_i64(length, 0)
         : length_given || have < 0 ? -1
         : p->parts == 1            ? 2 * (have - 1)
                                    : have;
  p->out = p->n;
  if (length && p->n < 1) return hn_op_bad(node, error, "dft_length is %lld", (long long)p->n);
  if (p->n >= 0 && p->onesided && !p->inverse) p->out = p->n / 2 + 1;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  const hone_tensor *length, *axis;
  hone_status status = hn_scalar_infer(io, 1, &length, error);
  if (!status) status = hn_scalar_infer(io, 2, &axis, error);
  if (status) return status;
  bool axis_open = hone_node_opset(io->node) >= 20 && hn_has_input(io, 2) && !axis;
  if (y.rank >= 0) {
    hn_dft p;
    status = hn_dft_of(io->node, &y, length, hn_has_input(io, 1), axis, &p, error);
    if (status && (!axis_open || y.rank < 2)) return status;
    if (axis_open)
      for (int32_t i = 0; i < y.rank - 1; i++) y.dim[i] = HONE_DIM_UNKNOWN;
    else
      y.dim[p.axis] = p.out;
    y.dim[y.rank - 1] = p.parts;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *y = io->output[0];
  hn_cost_flops(c, hn_known_count(y) / 2 * 5 * log2(hn_known_count(y) + 1));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *d = &x->desc;
  hn_dft p;
  hn_fourier f;
  hone_status status =
      hn_dft_of(call->node, d, hn_call_has(call, 1) ? call->input[1] : NULL, hn_call_has(call, 1),
                hn_call_has(call, 2) ? call->input[2] : NULL, &p, error);
  if (status || hn_count(y) == 0) return status;
  if (p.n < 1) return hn_op_bad(call->node, error, "there is nothing to transform");
  status = hn_fourier_make(call, p.n, p.inverse, y->desc.dtype, &f, error);
  if (status) return status;
  double *re = hn_scratch(call, p.n, 2 * sizeof *re, error), *im = re + p.n;
  if (!re) return HONE_ERROR_MEMORY;
  int64_t parts = d->dim[d->rank - 1], have = d->dim[p.axis];
  int64_t outer = hn_product(d->dim, 0, p.axis), inner = hn_product(d->dim, p.axis + 1, d->rank - 1);
  for (int64_t line = 0; line < outer * inner; line++) {
    int64_t o = line / inner, i = line % inner;
    memset(re, 0, (size_t)p.n * 2 * sizeof *re);
    for (int64_t k = 0; k < have && k < p.n; k++) {
      int64_t at = ((o * have + k) * inner + i) * parts;
      re[k] = hn_get_f64(x, at);
      im[k] = parts == 2 ? hn_get_f64(x, at + 1) : 0;
    }
    for (int64_t k = p.n / 2 + 1; p.parts == 1 && k < p.n; k++) re[k] = re[p.n - k], im[k] = -im[p.n - k];
    status = hn_fourier_run(call, &f, re, im, error);
    if (status) return status;
    for (int64_t k = 0; k < p.out; k++) {
      int64_t at = ((o * p.out + k) * inner + i) * p.parts;
      hn_set_f64(y, at, re[k]);
      if (p.parts == 2) hn_set_f64(y, at + 1, parts == 1 && hn_dft_is_real(p.n, k) ? 0 : im[k]);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT, .until = 19},
                                       {.name = "inverse", .type = HONE_ATTR_INT},
                                       {.name = "onesided", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(dft) = {HN_OP_HEAD,
              .op_type = "DFT",
              .since = 17,
              HN_INPUTS(1, 3),
              HN_OUTPUTS(1, 1),
              .types = HN_TYPES_FLOAT,
              .attrs = attrs,
              .infer = infer,
              .cost = cost,
              .reference = reference,
              .host_inputs = 1u << 1 | 1u << 2};
