/* The list of tactics.def. */
#ifndef HN_CUDA_TACTICS_H
#define HN_CUDA_TACTICS_H

#include <hone/plugin.h>

const hone_tactic_desc *const *hn_cuda_tactics(size_t *count);

#endif
