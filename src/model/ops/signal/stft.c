/* STFT: Fourier transforms of windowed frames that start frame_step apart; signal [batch, length, 1 or 2],
 * result [batch, frames, bins, 2]. */
#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/signal/fourier.h"

typedef struct plan {
  int64_t step, length, frames, bins; /* -1: not known yet */
} plan;

static hone_status make(const hone_node *node, const hone_tensor_desc *x, const hone_tensor *step,
                        const hone_tensor_desc *window, const hone_tensor *length, bool length_given, plan *p,
                        hone_error *error) {
  bool onesided = hone_node_int(node, "onesided", 1) != 0;
  if (x->rank != 3 && x->rank != 2) return hn_op_bad(node, error, "the signal has rank %d", x->rank);
  if (x->rank == 3 && x->dim[2] == 2 && onesided)
    return hn_op_bad(node, error, "onesided needs a real signal");
  if (x->rank == 3 && x->dim[2] >= 0 && x->dim[2] != 1 && x->dim[2] != 2)
    return hn_op_bad(node, error, "the last dimension is %lld, not 1 or 2", (long long)x->dim[2]);
  p->step = step ? hn_get_i64(step, 0) : -1;
  p->length = length         ? hn_get_i64(length, 0)
              : length_given ? -1
              : window       ? (window->rank == 1 ? window->dim[0] : -1)
                             : x->dim[1];
  if (step && p->step < 1) return hn_op_bad(node, error, "frame_step is %lld", (long long)p->step);
  if (p->length == 0 || (length && p->length < 1))
    return hn_op_bad(node, error, "frame_length is %lld", (long long)p->length);
  if (window && window->rank == 1 && window->dim[0] >= 0 && p->length >= 0 && window->dim[0] != p->length)
    return hn_op_bad(node, error, "the window has %lld elements, the frames %lld", (long long)window->dim[0],
                     (long long)p->length);
  bool known = p->step > 0 && p->length > 0 && x->dim[1] >= 0;
  if (known && x->dim[1] < p->length) return hn_op_bad(node, error, "the signal is shorter than a frame");
  p->frames = known ? (x->dim[1] - p->length) / p->step + 1 : HONE_DIM_UNKNOWN;
  p->bins = p->length < 0 ? HONE_DIM_UNKNOWN : onesided ? p->length / 2 + 1 : p->length;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dim[4] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, 2};
  hone_status status = hn_infer_same_dtype(io, 0, 2, error);
  if (!status) status = hn_infer_vector(io, 2, -1, error);
  if (status) return status;
  const hone_tensor *step, *length;
  status = hn_scalar_infer(io, 1, &step, error);
  if (!status) status = hn_scalar_infer(io, 3, &length, error);
  if (status) return status;
  if (x->rank >= 0) {
    plan p;
    status = make(io->node, x, step, hn_has_input(io, 2) ? io->input[2] : NULL, length, hn_has_input(io, 3),
                  &p, error);
    if (status) return status;
    dim[0] = x->dim[0], dim[1] = p.frames, dim[2] = p.bins;
  }
  hn_infer_set(io, 0, x->dtype, 4, dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *y = io->output[0];
  hn_cost_flops(c, hone_desc_known(y) ? hn_known_count(y) / 2 * 5 * log2((double)y->dim[2] + 1) : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *window = hn_call_has(call, 2) ? call->input[2] : NULL;
  hone_tensor *y = call->output[0];
  plan p;
  hn_fourier f;
  hone_status status = make(call->node, &x->desc, call->input[1], window ? &window->desc : NULL,
                            hn_call_has(call, 3) ? call->input[3] : NULL, hn_call_has(call, 3), &p, error);
  if (!status) status = hn_fourier_make(call, p.length, false, y->desc.dtype, &f, error);
  if (status || hn_count(y) == 0) return status;
  double *re = hn_scratch(call, p.length, 2 * sizeof *re, error), *im = re + p.length;
  if (!re) return HONE_ERROR_MEMORY;
  int64_t parts = x->desc.rank == 3 ? x->desc.dim[2] : 1, signal = x->desc.dim[1];
  for (int64_t b = 0; b < x->desc.dim[0]; b++)
    for (int64_t t = 0; t < p.frames; t++) {
      for (int64_t k = 0; k < p.length; k++) {
        int64_t at = (b * signal + t * p.step + k) * parts;
        double w = window ? hn_get_f64(window, k) : 1;
        re[k] = w * hn_get_f64(x, at);
        im[k] = parts == 2 ? w * hn_get_f64(x, at + 1) : 0;
      }
      status = hn_fourier_run(call, &f, re, im, error);
      if (status) return status;
      for (int64_t k = 0; k < p.bins; k++) {
        int64_t at = ((b * p.frames + t) * p.bins + k) * 2;
        hn_set_f64(y, at, re[k]);
        hn_set_f64(y, at + 1, im[k]);
      }
    }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "onesided", .type = HONE_ATTR_INT}, {0}};

HN_OP(stft) = {HN_OP_HEAD,
               .op_type = "STFT",
               .since = 17,
               HN_INPUTS(2, 4),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_FLOAT,
               .attrs = attrs,
               .infer = infer,
               .cost = cost,
               .reference = reference,
               .host_inputs = 1u << 1 | 1u << 3};
