/* Copies between a tensor and one that is longer along some axes. */
#ifndef HN_API_SHAPES_ROWS_H
#define HN_API_SHAPES_ROWS_H

#include <hone/tensor.h>

/* Fills `large` (dense, row-major) with `small`, repeating its last rows: what a model can do with these it
 * can do with those. */
void hn_rows_fill(const hone_tensor *small, const hone_tensor *large);
/* The first elements of `large`, as many as small has. */
void hn_rows_cut(const hone_tensor *large, const hone_tensor *small);
/* Is the small one the beginning of the large one's bytes? */
bool hn_rows_prefix(const hone_tensor_desc *small, const hone_tensor_desc *large);

#endif
