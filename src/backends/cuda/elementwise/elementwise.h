/* Generated elementwise kernels: any number of tensors of any types that broadcast to one set of dimensions,
 * and a body in device text for one element. Pointwise programs, conversions, integer arithmetic and
 * comparisons are bodies.
 *
 * The planner merges dimensions (base/nest.h), finds the widest vectors that the outputs allow, and sorts
 * operands: in vectors, one value a row, or element by element. Channel padding of the outputs is written as
 * zeros. The text depends on the ways of access, not on sizes: one compilation serves many shapes. */
#ifndef HN_CUDA_ELEMENTWISE_ELEMENTWISE_H
#define HN_CUDA_ELEMENTWISE_ELEMENTWISE_H

#include <hone/plugin.h>

#include "backends/cuda/device/elementwise_args.h"
#include "backends/cuda/driver/cuda.h"
#include "base/nest.h"
#include "base/str.h"

typedef enum hn_cuda_access {
  HN_CUDA_VECTOR, /* `width` consecutive elements at an aligned address */
  HN_CUDA_ROW,    /* one value for the whole row */
  HN_CUDA_SINGLE  /* `width` single loads */
} hn_cuda_access;

typedef struct hn_cuda_operand {
  hone_dtype dtype;
  hn_cuda_access access;
  uint32_t group; /* of operands with equal strides */
  bool whole;     /* a vector at the row's end may be read although it goes beyond the row */
} hn_cuda_operand;

typedef struct hn_cuda_elementwise {
  hn_nest nest; /* outputs, inputs, and the index within the row where rows have padding */
  hn_cuda_operand operand[HN_ELEMENTWISE_OPERANDS];
  uint32_t n_out, n_in, n_groups, leader[HN_ELEMENTWISE_OPERANDS];
  int width, unrolled;
  bool padded;  /* outputs have channel padding */
  bool partial; /* the last vector of a row is not full */
  int64_t row;  /* elements of a row that exist */
  int64_t vectors, per_row;
  double bytes;
} hn_cuda_elementwise;

/* Plans over descriptors. at: the run's addresses (outputs, then inputs), NULL where they are not known yet:
 * they count as aligned. widest: 0, or a bound on the elements of a vector. */
bool hn_cuda_elementwise_plan(hn_cuda_elementwise *plan, const hone_tensor_desc *const *out, uint32_t n_out,
                              const hone_tensor_desc *const *in, uint32_t n_in, void *const *at, int widest,
                              hone_reason *why);
/* For a step's outputs and its first n_in inputs, of which those that are left out do not count. */
bool hn_cuda_elementwise_step(hn_cuda_elementwise *plan, const hone_step *s, uint32_t n_in, void *const *at,
                              hone_reason *why);

/* Writes statements that set o0, o1... from i0, i1... The types are the elements' values
 * (device/elements.cuh): float for f32, f16 and bf16, double, the integer itself, u8 for bool (only 0 and 1
 * may be stored). */
typedef void (*hn_cuda_body)(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text);

hone_status hn_cuda_elementwise_launch(hn_cuda_queue *q, const hone_step *s, const hn_cuda_elementwise *plan,
                                       hn_cuda_body body, void *const *at, hone_error *error);

/* Plan, text and launch of a step's run. */
hone_status hn_cuda_elementwise_run(const hone_step_run *run, uint32_t n_in, hn_cuda_body body,
                                    hone_error *error);
/* Seconds: the bytes of all tensors at the rate that these kernels reach. */
double hn_cuda_elementwise_seconds(const hn_cuda_elementwise *plan, const hone_machine *m);

#endif
