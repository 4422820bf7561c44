/* What the pooling operators share: shape inference, and the walk over all windows of all planes. */
#ifndef HN_MODEL_OPS_POOL_H
#define HN_MODEL_OPS_POOL_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/window.h"

/* The input elements that one window covers: positions first[d] + i * dilation[d], i < count[d]. */
typedef struct hn_pool_tile {
  const hn_window *window; /* three-dimensional */
  int64_t out[3], first[3], count[3];
  int64_t plane; /* number of the plane: n * C + c */
} hn_pool_tile;

/* One plane of the input as double; returns the result of the window (and may use arg for more). `at` is the
 * index of the output element in the whole tensor. */
typedef double (*hn_pool_fn)(void *arg, const hn_pool_tile *tile, const double *plane, int64_t at);

/* Sets output 0 (dtype of the input) and, when wanted, output 1 (i64) to the pooled shape. */
hone_status hn_pool_infer(const hone_infer *io, hone_error *error);
/* Runs fn over every window. */
hone_status hn_pool_run(hone_call *call, hn_pool_fn fn, void *arg, hone_error *error);
/* One operation for every element of every window. */
void hn_pool_cost(const hone_infer *io, hone_cost *cost);

/* Global poolings: output [N, C, 1...]. f gets a plane of n elements. */
hone_status hn_global_pool_infer(const hone_infer *io, hone_error *error);
hone_status hn_global_pool_run(hone_call *call,
                               double (*f)(const hone_node *node, const double *x, int64_t n),
                               hone_error *error);
void hn_global_pool_cost(const hone_infer *io, hone_cost *cost);

/* (sum |x|^p)^(1/p) over strided runs is shared by LpPool and GlobalLpPool: one term, and the root of the
 * sum. */
double hn_lp_term(double x, double p);
double hn_lp_root(double sum, double p);
/* p, which opset 1 has as a float. 0: it is no whole number above 0. */
static inline int64_t hn_lp_exponent(const hone_node *node) {
  const float p = hone_node_float(node, "p", (float)hone_node_int(node, "p", 2));
  return p >= 1 && p < 0x1p30f && p == floorf(p) ? (int64_t)p : 0;
}
hone_status hn_lp_check(const hone_node *node, hone_error *error);
#define HN_LP_ATTRS                                                                                          \
  {"p", HONE_ATTR_FLOAT, false, 0, 1}, { "p", HONE_ATTR_INT, false, 2, 0 }

#define HN_POOL_ATTRS                                                                                        \
  {"auto_pad", HONE_ATTR_STRING, false, 0, 0}, {"kernel_shape", HONE_ATTR_INTS, true, 0, 0},                 \
      {"pads", HONE_ATTR_INTS, false, 0, 0}, {                                                               \
    "strides", HONE_ATTR_INTS, false, 0, 0                                                                   \
  }

#endif
