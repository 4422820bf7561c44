/* What a DFT node transforms, for its reference and its tactics. */
#ifndef HN_MODEL_OPS_SIGNAL_DFT_H
#define HN_MODEL_OPS_SIGNAL_DFT_H

#include "model/ops/common/op.h"

typedef struct hn_dft {
  int32_t axis;
  int64_t n, out; /* transformed points, and points that are given out; -1: not known */
  bool inverse, onesided;
  int64_t parts; /* numbers a point of the result */
} hn_dft;

/* length and axis: inputs 1 and 2, NULL where they are left out or not known; length_given: input 1 is there.
 */
hone_status hn_dft_of(const hone_node *node, const hone_tensor_desc *x, const hone_tensor *length,
                      bool length_given, const hone_tensor *axis, hn_dft *out, hone_error *error);

/* Point k of n of a real signal's spectrum is real: its sum has the factors 1 and -1 alone. */
static inline bool hn_dft_is_real(int64_t n, int64_t k) { return k == 0 || 2 * k == n; }

#endif
