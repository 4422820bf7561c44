/* BitwiseNot: every bit of an integer flipped. */
#include "model/ops/common/elementwise.h"

HN_UNARY_LOOP(w8, uint8_t, uint8_t, ~v)
HN_UNARY_LOOP(w16, uint16_t, uint16_t, ~v)
HN_UNARY_LOOP(w32, uint32_t, uint32_t, ~v)
HN_UNARY_LOOP(w64, uint64_t, uint64_t, ~v)
static const hn_unary_loops loops = {.of = {HN_WRAP_LOOP_ENTRIES}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(bitwise_not) = {HN_OP_HEAD,
                      .op_type = "BitwiseNot",
                      .since = 18,
                      HN_UNARY_ARITY,
                      .types = HN_TYPES_SINT | HN_TYPES_UINT,
                      .infer = hn_infer_same,
                      .reference = reference};
