/* How many of a product's weights are structured zeros, as sparse tensor cores want them. */
#ifndef HN_OPTIMIZE_STEP_SPARSITY_H
#define HN_OPTIMIZE_STEP_SPARSITY_H

#include <hone/plugin.h>

/* Of the groups of four weights that follow each other along K (input channels of a convolution, rows of a
 * product's B), percent with two zeros or more. Negative: no product, no constant weights of floating point,
 * or fewer than four along K. Reads everything only where the first groups are sparse; the share of dense
 * weights is that of these. */
double hn_sparse_groups(const hone_step *step);

#endif
