/* ScatterElements: a copy of the data, and the updates of a line one after the other. */
#include "backends/cuda/common/indexed.h"

HN_CUDA_TACTIC_BARE(scatter_elements, "ScatterElements", hn_cuda_indexed, hn_cuda_scatter_elements);
