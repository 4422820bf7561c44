/* Comparing tensors against a reference. Inside of improve only. */
#ifndef HN_IMPROVE_COMPARE_H
#define HN_IMPROVE_COMPARE_H

#include <hone/tensor.h>

typedef struct hn_difference {
  double max_abs;
  double range;       /* of the reference's finite values; 0: constant */
  double magnitude;   /* largest finite |reference| */
  int64_t count;      /* elements */
  int64_t unlike;     /* NaN or infinity against something else, or unequal strings */
  int64_t not_finite; /* in the reference */
  int64_t common;     /* elements equal to the reference's most telling constant: zero or its first element */
  int64_t where;      /* element of the largest difference */
} hn_difference;

/* Both row-major with equal dtype and dimensions. NaN equals NaN, infinities equal their like. Sequences and
 * optionals are compared by what is in them; where one has more, or a tensor of another shape, that is
 * unlike. */
void hn_compare(const hone_tensor *got, const hone_tensor *reference, hn_difference *out);

/* Error bound relative to the output's range for answers computed in this dtype; quantised: the graph rounds
 * to 8 bits somewhere, so a last-bit difference may become a step. Integers and bools are exact (0). */
double hn_verify_tolerance(hone_dtype dtype, bool quantised);

#endif
