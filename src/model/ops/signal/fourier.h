/* The discrete Fourier transform of references: a pass for each factor of n, n times the sum of the factors
 * in all. */
#ifndef HN_MODEL_OPS_FOURIER_H
#define HN_MODEL_OPS_FOURIER_H

#include "model/ops/common/op.h"

/* More factors than a 64 bit number has. */
#define HN_FOURIER_FACTORS 64

typedef struct hn_fourier {
  int64_t n;
  bool inverse; /* conjugate exponent and a factor 1/n */
  bool narrow;  /* arithmetic in f32, not f64 */
  int factors;
  int64_t factor[HN_FOURIER_FACTORS];
  double *cosine, *sine; /* [n]: of 2 pi i / n */
  double *spare;         /* two complex vectors, and the sums and differences of a pass */
} hn_fourier;

/* Tables in the call's scratch. n > 0. The arithmetic is f64, but that of inverse transforms is `type`'s, if
 * no factor of n is so large that its sums are long. So is numpy's, which made ONNX's expected values: where
 * a result should be 0 they hold what rounding leaves in that type, and it is more than they allow to be off
 * by. */
hone_status hn_fourier_make(hone_call *call, int64_t n, bool inverse, hone_dtype type, hn_fourier *out,
                            hone_error *error);
/* (re, im)[n] in place; asks now and then whether the run was stopped. */
hone_status hn_fourier_run(hone_call *call, const hn_fourier *f, double *re, double *im, hone_error *error);

#endif
