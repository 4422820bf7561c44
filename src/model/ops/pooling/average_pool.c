/* AveragePool: mean over each window. Padding counts only with count_include_pad, and what ceil_mode adds
 * beyond the padding never counts. */
#include "model/ops/pooling/pool.h"

static double window_mean(void *p, const hn_pool_tile *t, const double *x, int64_t at) {
  const hn_window *w = t->window;
  const bool include_pad = *(const bool *)p;
  double sum = 0, count = 1;
  (void)at;
  for (int64_t i = 0, d = t->first[0]; i < t->count[0]; i++, d += w->dilation[0])
    for (int64_t j = 0, h = t->first[1]; j < t->count[1]; j++, h += w->dilation[1])
      for (int64_t k = 0, c = t->first[2]; k < t->count[2]; k++, c += w->dilation[2])
        sum += x[(d * w->in[1] + h) * w->in[2] + c];
  for (int32_t d = 0; d < 3; d++) {
    int64_t n = t->count[d];
    if (include_pad) { /* elements of the window up to the end of the trailing padding */
      int64_t room = w->in[d] + w->pad_end[d] + w->pad[d] - t->out[d] * w->stride[d];
      n = hn_min(w->kernel[d], (room + w->dilation[d] - 1) / w->dilation[d]);
    }
    count *= (double)n;
  }
  return count > 0 ? sum / count : 0;
}

static hone_status reference(hone_call *call, hone_error *error) {
  bool include_pad = hone_node_int(call->node, "count_include_pad", 0) != 0;
  return hn_pool_run(call, window_mean, &include_pad, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       {"count_include_pad", HONE_ATTR_INT, false, 7, 0},
                                       {"ceil_mode", HONE_ATTR_INT, false, 10, 0},
                                       {"dilations", HONE_ATTR_INTS, false, 19, 0},
                                       {0}};

HN_OP(average_pool) = {HN_OP_HEAD,
                       .op_type = "AveragePool",
                       .since = 1,
                       HN_INPUTS(1, 1),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_FLOAT,
                       .attrs = attrs,
                       .infer = hn_pool_infer,
                       .cost = hn_pool_cost,
                       .reference = reference,
                       .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED};
