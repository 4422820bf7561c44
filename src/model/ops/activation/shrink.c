/* Shrink: x + bias below -lambd, x - bias above lambd, 0 between. Integers are computed in f64. */
#include "model/ops/common/elementwise.h"

#define SHRINK(W) ((W)v < -(W)param[0] ? (W)v + (W)param[1] : (W)v > (W)param[0] ? (W)v - (W)param[1] : (W)0)
/* What lies below 0 wraps, as casts of integers do. */
static inline uint64_t wrapped(double v) { return v < 0 ? (uint64_t)hn_trunc_i64(v) : hn_trunc_u64(v); }
#define SHRINK_INT(suffix, type)                                                                             \
  static void loop_##suffix(const void *from, void *to, int64_t n, const double *param) {                    \
    const type *x = from;                                                                                    \
    type *y = to;                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      type v = x[i];                                                                                         \
      y[i] = (type)wrapped(SHRINK(double));                                                                  \
    }                                                                                                        \
  }

HN_UNARY_FLOAT_LOOPS(SHRINK(T))
SHRINK_INT(i8, int8_t)
SHRINK_INT(i16, int16_t)
SHRINK_INT(i32, int32_t)
SHRINK_INT(i64, int64_t)
SHRINK_INT(u8, uint8_t)
SHRINK_INT(u16, uint16_t)
SHRINK_INT(u32, uint32_t)
SHRINK_INT(u64, uint64_t)
static const hn_unary_loops loops = HN_UNARY_NUMBER_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {hone_node_float(call->node, "lambd", 0.5f),
                           hone_node_float(call->node, "bias", 0)};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {
    {.name = "lambd", .type = HONE_ATTR_FLOAT}, {.name = "bias", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(shrink) = {HN_OP_HEAD,
                 .op_type = "Shrink",
                 .since = 9,
                 HN_UNARY_ARITY,
                 .types = HN_TYPES_NUMBER,
                 .attrs = attrs,
                 .infer = hn_infer_same,
                 .reference = reference};
