/* How the weights and frequencies of Winograd's convolution lie, for the files that pack and that run it. */
#ifndef HN_CPU_CONV_WINOGRAD_LAYOUT_H
#define HN_CPU_CONV_WINOGRAD_LAYOUT_H

#include "backends/cpu/conv/winograd_driver.h"
#include "base/integers.h"

static inline const hn_winograd_form *hn_winograd_plan_form(const hn_winograd *p) {
  return hn_winograd_form_of(p->m, p->stride);
}

/* Matrices of V and of the weights. */
static inline int64_t hn_winograd_pieces(const hn_winograd *p) {
  return hn_winograd_plan_form(p)->pieces * hn_winograd_plan_form(p)->pieces;
}

/* A frequency: its pieces are `rows` rows of `columns` in the grid of all. In V and in packed weights, where
 * they lie by frequencies, there are n of them, and those `before`. */
typedef struct hn_winograd_frequency {
  int64_t row, column, rows, columns;
  int64_t n, before;
} hn_winograd_frequency;

static inline hn_winograd_frequency hn_winograd_frequency_of(const hn_winograd_form *f, int64_t index) {
  const int32_t *const i = f->first + index / f->points, *const j = f->first + index % f->points;
  const int64_t rows = i[1] - i[0], columns = j[1] - j[0];
  return (hn_winograd_frequency){i[0], j[0], rows, columns, rows * columns, i[0] * f->pieces + rows * j[0]};
}

/* Columns of a panel. */
static inline int64_t hn_winograd_columns(const hn_winograd *p, const hn_gemm_ops *o) {
  return p->bf16_rows ? HN_BF16_PANEL : o->nr;
}

/* A panel has columns of one group only. Panels of a group; the first output channel of a panel. */
static inline int64_t hn_winograd_group_panels(const hn_winograd *p, const hn_gemm_ops *o) {
  return hn_div_up(p->cout, hn_winograd_columns(p, o));
}
static inline int64_t hn_winograd_column_of(const hn_winograd *p, const hn_gemm_ops *o, int64_t panel) {
  const int64_t n = hn_winograd_group_panels(p, o);
  return panel / n * p->cout + panel % n * hn_winograd_columns(p, o);
}

/* Values of bf16 before a panel, and of one of its pieces. */
size_t hn_winograd_bf16_before(const hn_winograd *p, int64_t panel);
size_t hn_winograd_bf16_piece(const hn_winograd *p, int64_t panel);

#endif
