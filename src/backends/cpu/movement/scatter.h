/* What ScatterElements and ScatterND have in common: a copy of the data in which updates replace elements, or
 * are combined with them. */
#ifndef HN_CPU_MOVEMENT_SCATTER_H
#define HN_CPU_MOVEMENT_SCATTER_H

#include <hone/plugin.h>

#include "model/ops/indexing/combine.h"

/* Whether data, updates and result are row-major and of one type that moves as bits, and that type, where
 * they are combined, f32. *element: bytes of one. */
bool hn_scatter_accept(const hone_step *s, int32_t *element, hn_combine *how, hone_reason *why);

/* The result begins as a copy of the data. */
void hn_scatter_begin(const hone_step_run *r);

/* n floats, one after the other, combined with what is there. how is not HN_COMBINE_NONE. */
static inline void hn_scatter_combine(hn_combine how, float *y, const float *u, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float a = y[i], b = u[i];
    y[i] = how == HN_COMBINE_ADD   ? a + b
           : how == HN_COMBINE_MUL ? a * b
           : how == HN_COMBINE_MAX ? (b > a || b != b ? b : a)
                                   : (b < a || b != b ? b : a);
  }
}

#endif
