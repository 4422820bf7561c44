/* SpaceToDepth: moves blocks of pixels into channels. */
#include "model/ops/movement/blocks.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_blocks_infer(io, false, error);
}
static hone_status reference(hone_call *call, hone_error *error) { return hn_blocks_run(call, false, error); }

static const hone_attr_desc attrs[] = {
    {"blocksize", HONE_ATTR_INT, true, 0, 0}, {"mode", HONE_ATTR_STRING, false, 28, 0}, {0}};

HN_OP(space_to_depth) = {HN_OP_HEAD,
                         .op_type = "SpaceToDepth",
                         .since = 1,
                         .flags = HONE_OP_MOVE,
                         HN_INPUTS(1, 1),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_ALL,
                         .attrs = attrs,
                         .infer = infer,
                         .reference = reference,
                         .layouts = HONE_LAST_ALLOWED};
