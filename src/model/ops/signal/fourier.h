/* The discrete Fourier transform of references: n log n for powers of two, n^2 otherwise. */
#ifndef HN_MODEL_OPS_FOURIER_H
#define HN_MODEL_OPS_FOURIER_H

#include "model/ops/common/op.h"

typedef struct hn_fourier {
  int64_t n;
  bool inverse;          /* conjugate exponent and a factor 1/n */
  double *cosine, *sine; /* [n]: of 2 pi i / n */
  double *spare;         /* [2 n] */
} hn_fourier;

/* Tables in the call's scratch. n > 0. */
hone_status hn_fourier_make(hone_call *call, int64_t n, bool inverse, hn_fourier *out, hone_error *error);
/* (re, im)[n] in place; asks now and then whether the run was stopped. */
hone_status hn_fourier_run(hone_call *call, const hn_fourier *f, double *re, double *im, hone_error *error);

#endif
