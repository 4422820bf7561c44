/* Affine quantisation as the Q/DQ operators define it: which scale belongs to which element, and saturation.
 */
#ifndef HN_MODEL_OPS_QUANT_H
#define HN_MODEL_OPS_QUANT_H

#include "model/ops/common/bulk.h"

/* A tensor seen as [outer][axis][inner]; element (o, a, i) has scale number
 * per tensor: 0, per axis: a, blocked: (o * blocks + a / block) * inner + i. */
typedef enum hn_granularity { HN_PER_TENSOR, HN_PER_AXIS, HN_BLOCKED } hn_granularity;
typedef struct hn_quant_map {
  hn_granularity kind;
  int64_t outer, axis, inner, block, blocks;
} hn_quant_map;

/* Checks scale (and zero point) against x by the attributes axis and block_size. Unknown shapes pass; then
 * *map is not complete. zero may be NULL. */
hone_status hn_quant_map_init(hn_quant_map *map, const hone_node *node, const hone_tensor_desc *x,
                              const hone_tensor_desc *scale, const hone_tensor_desc *zero, hone_error *error);
static inline int64_t hn_quant_index(const hn_quant_map *m, int64_t o, int64_t a, int64_t i) {
  return m->kind == HN_PER_TENSOR ? 0
         : m->kind == HN_PER_AXIS ? a
                                  : (o * m->blocks + a / m->block) * m->inner + i;
}

/* Range of an integer dtype of at most 32 bits; false for others. */
bool hn_quant_range(hone_dtype dtype, double *lo, double *hi);
/* v limited to [lo, hi]; NaN becomes lo. */
static inline double hn_saturate(double v, double lo, double hi) { return !(v > lo) ? lo : v > hi ? hi : v; }

/* A scale or zero point of QLinearConv and QLinearMatMul: one value for all, or one for each row, column or
 * filter. */
typedef struct hn_quant_param {
  const hone_tensor *t; /* NULL: zero */
  bool single;
} hn_quant_param;
static inline hn_quant_param hn_quant_param_of(const hone_tensor *t) {
  return (hn_quant_param){t, !t || hn_count(t) == 1};
}
static inline double hn_quant_at(hn_quant_param p, int64_t i) {
  return p.t ? hn_get_f64(p.t, p.single ? 0 : i) : 0;
}

#endif
