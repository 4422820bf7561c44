/* Products of codes of 8 bits (QLinearConv, QLinearConvAdd, QLinearConvTable, QLinearGemm, QLinearMatMul) as
 * the product kernels see them: sums in i32 of x and of i8 weights, a bias that has the input's zero point
 * taken off, and one rounding to codes. */
#ifndef HN_CUDA_QUANTIZED_CODES_H
#define HN_CUDA_QUANTIZED_CODES_H

#include <hone/plugin.h>

#include "backends/cuda/device/codes_args.h"
#include "backends/cuda/product/product.h"
#include "optimize/step/qlinear.h"

typedef struct hn_codes {
  hone_step inner; /* the product alone: inputs x and w */
  hone_step_tensor in[2], out;
  hn_codes_args args; /* numbers; addresses come with the run */
  hone_dtype middle;  /* the product's own codes; the output's where nothing is added */
  hone_dtype added;   /* of what is added; NONE: nothing is */
  hone_dtype summed;  /* of what it is added to: the product's own, or a table's */
  bool biased, vectors, table;
  bool stepped; /* each column of the result has a scale of its own, and a zero point */
  int32_t x_zero;
  int32_t taken;          /* from x before its products: u8 as i8 is 128 less */
  float x_scale, y_scale; /* y_scale: the smallest */
  int64_t channels, per;  /* weight i belongs to output channel i / per % channels */
} hn_codes;

/* False with a reason: the step is none of these, or its sums or weights go beyond 32 and 8 bits. `c` refers
 * to itself: it stays where it is. */
bool hn_codes_read(const hone_step *s, hn_codes *c, hone_reason *why);

/* Reads the step and its product. */
bool hn_codes_product(const hone_step *s, hn_codes *c, hn_product *p, hone_reason *why);

/* The blob: `weights` bytes that the tactic packs, then the vectors. */
typedef struct hn_codes_blob {
  size_t bias, scale, zeros, outside, bytes;
} hn_codes_blob;
hn_codes_blob hn_codes_blob_of(const hn_codes *c, size_t weights);

/* Weights less their zero points, in the step's order, as the constant of the inner step's input 1; freed by
 * the caller (hn_free). NULL: no memory. */
int8_t *hn_codes_weights(const hone_step *s, hn_codes *c);
/* Fills the blob behind the weights. `weights`: what the above returned. */
void hn_codes_vectors(const hone_step *s, const hn_codes *c, const int8_t *weights, const hn_codes_blob *b,
                      void *blob);

/* The arguments with a run's addresses. */
void hn_codes_bind(const hone_step_run *run, const hn_codes_blob *b, hn_codes *c);

/* What of the text's prefix follows from the step: HN_ADDED, HN_TABLE and HN_MIDDLE, HN_ZEROS, HN_OUTSIDE
 * (`padded`: taps may lie outside). */
const char *hn_codes_prefix(const hn_codes *c, bool padded, char *text, size_t size);

/* A scale or zero point of one value; 0 for a zero point left out. */
bool hn_codes_number(const hone_step *s, uint32_t input, float *out, hone_reason *why);
bool hn_codes_type(hone_dtype t);
/* The constants of a sum; false where scales are out of proportion. */
bool hn_codes_sum_of(hn_codes_sum *sum, hone_reason *why);

#endif
