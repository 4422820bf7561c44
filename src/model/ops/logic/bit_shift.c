/* BitShift: integers shifted left or right. Shifting by the width or more leaves what fills the vacated bits:
 * 0, or the sign of a signed integer that goes to the right; so does shifting by a negative number. */
#include "model/ops/common/elementwise.h"

#define SHIFTS(bits, type)                                                                                   \
  HN_BINARY_LOOP(left_##bits, type, type, type, y >= bits ? 0 : (uint64_t)x << y)                            \
  HN_BINARY_LOOP(right_##bits, type, type, type, y >= bits ? 0 : x >> y)
SHIFTS(8, uint8_t)
SHIFTS(16, uint16_t)
SHIFTS(32, uint32_t)
SHIFTS(64, uint64_t)
#define SIGNED_SHIFTS(bits, type)                                                                            \
  HN_BINARY_LOOP(left_i##bits, type, type, type, y < 0 || y >= bits ? 0 : (uint64_t)x << y)                  \
  HN_BINARY_LOOP(right_i##bits, type, type, type, y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> y)
SIGNED_SHIFTS(8, int8_t)
SIGNED_SHIFTS(16, int16_t)
SIGNED_SHIFTS(32, int32_t)
SIGNED_SHIFTS(64, int64_t)
static const hn_binary_loops left = {.of = {[HONE_DTYPE_U8] = loop_left_8,
                                            [HONE_DTYPE_U16] = loop_left_16,
                                            [HONE_DTYPE_U32] = loop_left_32,
                                            [HONE_DTYPE_U64] = loop_left_64,
                                            [HONE_DTYPE_I8] = loop_left_i8,
                                            [HONE_DTYPE_I16] = loop_left_i16,
                                            [HONE_DTYPE_I32] = loop_left_i32,
                                            [HONE_DTYPE_I64] = loop_left_i64}};
static const hn_binary_loops right = {.of = {[HONE_DTYPE_U8] = loop_right_8,
                                             [HONE_DTYPE_U16] = loop_right_16,
                                             [HONE_DTYPE_U32] = loop_right_32,
                                             [HONE_DTYPE_U64] = loop_right_64,
                                             [HONE_DTYPE_I8] = loop_right_i8,
                                             [HONE_DTYPE_I16] = loop_right_i16,
                                             [HONE_DTYPE_I32] = loop_right_i32,
                                             [HONE_DTYPE_I64] = loop_right_i64}};

static hone_status reference(hone_call *call, hone_error *error) {
  bool to_left = strcmp(hone_node_string(call->node, "direction", ""), "LEFT") == 0;
  return hn_binary_run(call, to_left ? &left : &right, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const char *direction = hone_node_string(io->node, "direction", "");
  if (strcmp(direction, "LEFT") && strcmp(direction, "RIGHT"))
    return hn_op_bad(io->node, error, "direction is '%s'", direction);
  if (hone_dtype_is_signed_int(io->input[0]->dtype) && hone_node_opset(io->node) < 28)
    return hn_op_bad(io->node, error, "signed integers need opset 28");
  return hn_infer_binary(io, error);
}

static const hone_attr_desc attrs[] = {{.name = "direction", .type = HONE_ATTR_STRING, .required = true},
                                       {0}};

HN_OP(bit_shift) = {HN_OP_HEAD,
                    .op_type = "BitShift",
                    .since = 11,
                    HN_BINARY_ARITY,
                    .types = HN_TYPES_UINT | HN_TYPES_SINT,
                    .attrs = attrs,
                    .infer = infer,
                    .reference = reference};
