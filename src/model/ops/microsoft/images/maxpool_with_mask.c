/* MaxpoolWithMask: MaxPool that reads a row of a window up to the first place where the mask is 0, which for
 * images and volumes is not asked of the very first place; a window without a place gives the lowest number.
 * The mask is one for all channels: where it has more, ONNX Runtime reads none of their rows as they lie. */
#include "model/ops/pooling/pool.h"

#include <float.h>

enum { X, MASK };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *m = io->input[MASK];
  hone_status s = hn_infer_dtype_in(io, MASK, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s) return s;
  if (x->rank >= 0 && m->rank >= 0 && m->rank != x->rank)
    return hn_op_bad(io->node, error, "the mask has rank %d, the input %d", (int)m->rank, (int)x->rank);
  for (int32_t d = 0; d < m->rank; d++) {
    if (d < 2 && m->dim[d] > 1)
      return hn_op_refuse(io->node, error, "a mask of several %s", d ? "channels" : "images");
    if (d >= 2 && x->rank >= 0 && x->dim[d] >= 0 && m->dim[d] >= 0 && x->dim[d] != m->dim[d])
      return hn_op_bad(io->node, error, "the mask has size %lld in dimension %d, the input %lld",
                       (long long)m->dim[d], (int)d, (long long)x->dim[d]);
  }
  return hn_pool_infer(io, error);
}

typedef struct masked {
  const int32_t *mask;
  bool first; /* asked of the first place, too: of rows alone */
} masked;

static double window_max(void *arg, const hn_pool_tile *t, const double *x, int64_t at) {
  const masked *m = arg;
  const hn_window *w = t->window;
  double best = -(double)FLT_MAX;
  (void)at;
  for (int64_t i = 0; i < t->count[0]; i++)
    for (int64_t j = 0; j < t->count[1]; j++)
      for (int64_t k = 0; k < t->count[2]; k++) {
        const int64_t place = ((t->first[0] + i) * w->in[1] + t->first[1] + j) * w->in[2] + t->first[2] + k;
        if (!m->mask[place] && (place || m->first)) break;
        if (x[place] > best) best = x[place];
      }
  return best;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *mask = call->input[MASK];
  masked m = {.mask = mask->data, .first = mask->desc.rank == 3};
  if (mask->desc.dim[0] * mask->desc.dim[1] != 1 && hn_count(call->input[X]) > 0)
    return hn_op_bad(call->node, error, "the mask is not one for all channels");
  return hn_pool_run(call, window_max, &m, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS, {"storage_order", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_OP(maxpool_with_mask) = {HONE_DESC_HEAD(hone_op_desc),
                            .domain = "com.microsoft",
                            .op_type = "MaxpoolWithMask",
                            .since = 1,
                            HN_INPUTS(2, 2),
                            HN_OUTPUTS(1, 1),
                            .types = HONE_TYPES(HONE_DTYPE_F32),
                            .attrs = attrs,
                            .infer = infer,
                            .cost = hn_pool_cost,
                            .reference = reference};
