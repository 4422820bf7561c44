/* Mod: the remainder with the divisor's sign (fmod 0; floats since opset 28), or with the dividend's as C's
 * fmod (fmod 1). */
#include "model/ops/common/elementwise.h"

/* Division by -1 is kept from the hardware: it traps for the lowest integer. */
#define FLOORED (y == -1 ? 0 : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y)
#define TRUNCATED (y == -1 ? 0 : x % y)

/* The remainder itself is exact; where it has the dividend's sign the divisor is added, rounded once. */
static float floored_f32(float x, float y) {
  const float r = fmodf(x, y);
  return r == 0 ? copysignf(0, y) : (r < 0) != (y < 0) ? r + y : r;
}
static double floored_f64(double x, double y) {
  const double r = fmod(x, y);
  return r == 0 ? copysign(0.0, y) : (r < 0) != (y < 0) ? r + y : r;
}
HN_DIVISION_LOOP(i8, int8_t, FLOORED)
HN_DIVISION_LOOP(i16, int16_t, FLOORED)
HN_DIVISION_LOOP(i32, int32_t, FLOORED)
HN_DIVISION_LOOP(i64, int64_t, FLOORED)
HN_DIVISION_LOOP(u8, uint8_t, x % y)
HN_DIVISION_LOOP(u16, uint16_t, x % y)
HN_DIVISION_LOOP(u32, uint32_t, x % y)
HN_DIVISION_LOOP(u64, uint64_t, x % y)
HN_DIVISION_LOOP(c8, int8_t, TRUNCATED)
HN_DIVISION_LOOP(c16, int16_t, TRUNCATED)
HN_DIVISION_LOOP(c32, int32_t, TRUNCATED)
HN_DIVISION_LOOP(c64, int64_t, TRUNCATED)
HN_BINARY_FLOAT_LOOPS(fmod(x, y))
HN_BINARY_LOOP(p32, float, float, float, floored_f32(x, y))
HN_BINARY_LOOP(p64, double, double, double, floored_f64(x, y))

static const hn_binary_loops floored = {
    .of = {[HONE_DTYPE_F32] = loop_p32, [HONE_DTYPE_F64] = loop_p64, HN_INT_LOOP_ENTRIES}};
static const hn_binary_loops truncated = {.of = {[HONE_DTYPE_F32] = loop_f32,
                                                 [HONE_DTYPE_F64] = loop_f64,
                                                 [HONE_DTYPE_I8] = loop_c8,
                                                 [HONE_DTYPE_I16] = loop_c16,
                                                 [HONE_DTYPE_I32] = loop_c32,
                                                 [HONE_DTYPE_I64] = loop_c64,
                                                 [HONE_DTYPE_U8] = loop_u8,
                                                 [HONE_DTYPE_U16] = loop_u16,
                                                 [HONE_DTYPE_U32] = loop_u32,
                                                 [HONE_DTYPE_U64] = loop_u64}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_binary_run(call, hone_node_int(call->node, "fmod", 0) ? &truncated : &floored, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (hone_dtype_is_float(io->input[0]->dtype) && !hone_node_int(io->node, "fmod", 0) &&
      hone_node_opset(io->node) < 28)
    return hn_op_bad(io->node, error, "floats need fmod = 1 before opset 28");
  return hn_infer_binary(io, error);
}

static const hone_attr_desc attrs[] = {{.name = "fmod", .type = HONE_ATTR_INT}, {0}};

HN_OP(mod) = {HN_OP_HEAD,      .op_type = "Mod",         .since = 10,
              HN_BINARY_ARITY, .types = HN_TYPES_NUMBER, .attrs = attrs,
              .infer = infer,  .reference = reference};
