/* Reductions of f32 tensors over any axes. Reduced dimensions that are neighbours in memory are one; where
 * several are left, each is a pass of its own: the first reads the input, the others what is left of it. */
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
  bool columns;        /* the reduced dimension is not the contiguous one */
  hn_nest nest;        /* operand 0: x, 1: y; columns: the last two are (reduced, kept) */
  int64_t length;      /* of the reduced dimension */
  int64_t kept;        /* columns: length of the contiguous kept dimension */
  int64_t outer;       /* rows, or matrices to reduce */
  int64_t chunk;       /* columns: kept elements a task does */
  int64_t parts;       /* the reduced dimension is cut into so many, each with a result of its own */
  int64_t part_stride; /* between the results of two parts */
  int32_t to;          /* of a plan: -1 the output, else which buffer of the workspace */
} hn_reduction;

enum { HN_REDUCTION_PASSES = HONE_MAX_RANK + 1 };

typedef struct hn_reduction_plan {
  int64_t count;            /* elements that make one result */
  size_t second, workspace; /* where the second buffer begins; bytes of both */
  int32_t n;
  hn_reduction pass[HN_REDUCTION_PASSES]; /* a blob holds n of them */
} hn_reduction_plan;

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
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 3, hn_reduction, __VA_ARGS__)

#endif
