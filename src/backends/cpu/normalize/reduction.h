/* Reductions of f32 tensors in any layout whose reduced dimensions merge into one: trailing axes, spatial
 * axes of both layouts, a single axis. */
#ifndef HN_CPU_NORMALIZE_REDUCTION_H
#define HN_CPU_NORMALIZE_REDUCTION_H

#include "base/nest.h"
#include "backends/cpu/step/step.h"
#include "backends/cpu/kernels/reduce/reduce.h"
#include "backends/tactic.h"

typedef enum hn_reduction_finish {
  HN_FINISH_NONE,
  HN_FINISH_MEAN,
  HN_FINISH_SQRT,
  HN_FINISH_LOG
} hn_reduction_finish;

typedef struct hn_reduction {
  hn_isa isa;
  hn_reduce_kind kind;
  hn_reduction_finish finish;
  bool columns;   /* the reduced dimension is not the contiguous one */
  hn_nest nest;   /* operand 0: x, 1: y; columns: the last two are (reduced, kept) */
  int64_t length; /* of the reduced dimension */
  int64_t kept;   /* columns: length of the contiguous kept dimension */
  int64_t outer;  /* rows, or matrices to reduce */
  int64_t chunk;  /* columns: kept elements a task does */
} hn_reduction;

/* Builds the nest of x and y over x's dimensions and brings the dimensions named in the bit set `axes` to
 * one. y_stride: y's strides along x's dimensions (0 in the reduced ones when y lacks them). Refuses what
 * does not merge. Sets nest, columns, length, kept, outer. */
bool hn_reduction_collapse(const hone_tensor_desc *x, const int64_t *y_stride, uint32_t axes, hn_reduction *r,
                           hone_reason *why);

typedef struct hn_reduction_config {
  hn_reduce_kind kind;
  hn_reduction_finish finish;
  bool spatial; /* GlobalAveragePool and GlobalMaxPool: all axes from 2 on */
} hn_reduction_config;

HN_FAMILY_PACKED(hn_reduction);

#define hn_cpu_reduction_tactic(NAME, ANCHOR, ...)                                                           \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 1, hn_reduction, __VA_ARGS__)

#endif
