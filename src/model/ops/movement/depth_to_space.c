/* DepthToSpace: moves channels into blocks of pixels. */
#include "model/ops/movement/blocks.h"

static hone_status infer(const hone_infer *io, hone_error *error) { return hn_blocks_infer(io, true, error); }

static hone_status reference(hone_call *call, hone_error *error) { return hn_blocks_run(call, true, error); }

static const hone_attr_desc attrs[] = {
    {"blocksize", HONE_ATTR_INT, true, 0, 0}, {"mode", HONE_ATTR_STRING, false, 11, 0}, {0}};

HN_OP(depth_to_space) = {HN_OP_HEAD,
                         .op_type = "DepthToSpace",
                         .since = 1,
                         .flags = HONE_OP_MOVE,
                         HN_INPUTS(1, 1),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_ALL,
                         .attrs = attrs,
                         .infer = infer,
                         .reference = reference,
                         .layouts = HONE_LAST_ALLOWED};
