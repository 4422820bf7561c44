/* DepthToSpace and SpaceToDepth: the same permutation, read in two directions. In
 * their mode CRD depth is the slowest part of a channel's number, in DCR (the default) the fastest. */
#ifndef HN_MODEL_OPS_BLOCKS_H
#define HN_MODEL_OPS_BLOCKS_H

#include "model/ops/common/bulk.h"

hone_status hn_blocks_infer(const hone_infer *io, bool to_space, hone_error *error);
hone_status hn_blocks_run(hone_call *call, bool to_space, hone_error *error);

#endif
