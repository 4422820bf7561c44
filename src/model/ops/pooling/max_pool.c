/* MaxPool, with the positions of the maxima as second output. NaN wins; the first of equal maxima is
 * reported. */
#include "model/ops/pooling/pool.h"

typedef struct max_arg {
  int64_t *index; /* NULL: not wanted */
  bool column_major;
  double least; /* of a window that lies wholly in the padding */
} max_arg;

static double window_max(void *p, const hn_pool_tile *t, const double *x, int64_t at) {
  const max_arg *arg = p;
  const hn_window *w = t->window;
  double best = arg->least;
  int64_t place[3] = {0};
  bool any = false;
  for (int64_t i = 0, d = t->first[0]; i < t->count[0]; i++, d += w->dilation[0])
    for (int64_t j = 0, h = t->first[1]; j < t->count[1]; j++, h += w->dilation[1])
      for (int64_t k = 0, c = t->first[2]; k < t->count[2]; k++, c += w->dilation[2]) {
        double v = x[(d * w->in[1] + h) * w->in[2] + c];
        if (any && !(v > best) && !(isnan(v) && !isnan(best))) continue;
        any = true;
        best = v;
        place[0] = d, place[1] = h, place[2] = c;
      }
  if (arg->index) {
    int64_t in_plane = arg->column_major ? (place[2] * w->in[1] + place[1]) * w->in[0] + place[0]
                                         : (place[0] * w->in[1] + place[1]) * w->in[2] + place[2];
    arg->index[at] = t->plane * w->in[0] * w->in[1] * w->in[2] + in_plane;
  }
  return best;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t order = hone_node_int(io->node, "storage_order", 0);
  if (order != 0 && order != 1) return hn_op_bad(io->node, error, "storage_order is %lld", (long long)order);
  return hn_pool_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_dtype d = call->input[0]->desc.dtype;
  max_arg arg = {.column_major = hone_node_int(call->node, "storage_order", 0) == 1,
                 .least = d == HONE_DTYPE_I8   ? -128
                          : d == HONE_DTYPE_U8 ? 0
                                               : -INFINITY};
  if (call->n_outputs > 1 && call->output[1]) arg.index = call->output[1]->data;
  return hn_pool_run(call, window_max, &arg, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       {"storage_order", HONE_ATTR_INT, false, 8, 0},
                                       {"ceil_mode", HONE_ATTR_INT, false, 10, 0},
                                       {"dilations", HONE_ATTR_INTS, false, 10, 0},
                                       {0}};

HN_OP(max_pool) = {HN_OP_HEAD,
                   .op_type = "MaxPool",
                   .since = 1,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 2),
                   .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8),
                   .attrs = attrs,
                   .infer = infer,
                   .cost = hn_pool_cost,
                   .reference = reference,
                   .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
                   .codes = HONE_CODES_SAME,
                   .on_codes = "QLinearMaxPool"};
