/* Products of codes of which a library makes the sums: rows of i8 times packed weights, i32 in memory; before
 * and behind it stand kernels of our own (codes_sums.cu), so that the codes are the very ones of the other
 * tactics. */
#ifndef HN_CUDA_QUANTIZED_CODES_SUMS_H
#define HN_CUDA_QUANTIZED_CODES_SUMS_H

#include "backends/cuda/quantized/codes.h"

typedef struct hn_codes_sums {
  hn_codes c;
  hn_product p;
  int64_t rows, columns, depth; /* of the library's product: columns and depth in whole sixteens */
  int64_t row;                  /* from one row of codes to the next */
  bool copied;                  /* rows of codes go to the workspace first, as i8 */
  size_t at_sums, at_library;   /* in the workspace, behind those rows; what the library wants comes last */
} hn_codes_sums;

/* False with a reason: no step of codes, or no product of whole rows. `q` refers to itself: it stays where it
 * is. */
bool hn_codes_sums_of(const hone_step *s, hn_codes_sums *q, hone_reason *why);

/* The blob: `columns` rows of `depth` weights, then the vectors. */
hn_codes_blob hn_codes_sums_blob(const hn_codes_sums *q);
hone_status hn_codes_sums_pack(const hone_step *s, hn_codes_sums *q, void *blob, hone_error *error);

/* Puts the rows where the library finds them (*x), and turns its sums into the output. */
hone_status hn_codes_sums_begin(const hone_step_run *run, hn_codes_sums *q, const void **x,
                                hone_error *error);
hone_status hn_codes_sums_end(const hone_step_run *run, hn_codes_sums *q, hone_error *error);

/* Seconds of both. */
double hn_codes_sums_seconds(const hone_machine *m, const hn_codes_sums *q);

#endif
