/* What Rfft and Irfft share: their attributes, and the transform of a line. */
#ifndef HN_MODEL_OPS_MICROSOFT_SPECTRUM_H
#define HN_MODEL_OPS_MICROSOFT_SPECTRUM_H

#include "model/ops/common/bulk.h"
#include "model/ops/signal/dft.h"
#include "model/ops/signal/fourier.h"

typedef struct hn_spectrum {
  hn_fourier turns;
  double *re, *im; /* [n] */
} hn_spectrum;

static inline hone_status hn_spectrum_check(const hone_node *node, hone_error *error) {
  if (!hone_node_int(node, "onesided", 1)) return hn_op_refuse(node, error, "onesided is 0");
  if (hone_node_int(node, "normalized", 0)) return hn_op_refuse(node, error, "normalized is not 0");
  const int64_t axes = hone_node_int(node, "signal_ndim", 1);
  return axes == 1 ? HONE_OK : hn_op_refuse(node, error, "a transform over %lld dimensions", (long long)axes);
}

/* Tables and room in the call's scratch; arithmetic in f64. */
static inline hone_status hn_spectrum_make(hone_call *call, int64_t n, bool inverse, hn_spectrum *t,
                                           hone_error *error) {
  const hone_status s = hn_fourier_make(call, n, inverse, HONE_DTYPE_F64, &t->turns, error);
  if (s) return s;
  t->re = hn_scratch(call, n, 2 * sizeof *t->re, error);
  t->im = t->re ? t->re + n : NULL;
  return t->re ? HONE_OK : HONE_ERROR_MEMORY;
}

/* What stands below infer and reference. */
#define HN_SPECTRUM_OP(unit, onnx)                                                                           \
  static void cost(const hone_infer *io, hone_cost *c) {                                                     \
    const double n = hn_known_count(io->output[0]);                                                          \
    hn_cost_flops(c, n * 5 * log2(n + 1));                                                                   \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {{.name = "onesided", .type = HONE_ATTR_INT},                        \
                                         {.name = "normalized", .type = HONE_ATTR_INT},                      \
                                         {.name = "signal_ndim", .type = HONE_ATTR_INT},                     \
                                         {0}};                                                               \
  HN_OP(unit) = {HONE_DESC_HEAD(hone_op_desc),                                                               \
                 .domain = "com.microsoft",                                                                  \
                 .op_type = onnx,                                                                            \
                 .since = 1,                                                                                 \
                 HN_INPUTS(1, 1),                                                                            \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = HN_TYPES_FLOAT,                                                                    \
                 .attrs = attrs,                                                                             \
                 .infer = infer,                                                                             \
                 .cost = cost,                                                                               \
                 .reference = reference};

#endif
