/* Elementwise families: an operator states its formula once, as loops over runs of one dtype; broadcasting,
 * 16-bit floats and stopping are done here. */
#ifndef HN_MODEL_OPS_ELEMENTWISE_H
#define HN_MODEL_OPS_ELEMENTWISE_H

#include "base/wide.h"
#include "model/ops/common/convert.h"

#include <tgmath.h> /* formulas are written once for float and double: constants as (T)0.5 */

/* ---------------------------------------------------------------- y = f(x) */

/* Parameters of a formula (alpha, beta...), the same for all elements. */
typedef void (*hn_unary_loop)(const void *x, void *y, int64_t n, const double *param);

typedef struct hn_unary_loops {
  hn_unary_loop of[HONE_DTYPE_COUNT]; /* f16 and bf16 are computed by the f32 entry */
} hn_unary_loops;

/* Defines loop_<suffix>: T is the element type, v the element, p0 and p1 the parameters; R is the result's
 * type. */
#define HN_UNARY_LOOP(suffix, TYPE, RESULT, expr) static HN_UNARY_LOOP_OF(loop_##suffix, TYPE, RESULT, expr)
/* The same for as wide vectors as the processor has, with the same results. */
#define HN_UNARY_WIDE_LOOP(suffix, TYPE, RESULT, expr)                                                       \
  HN_WIDE_BODY HN_UNARY_LOOP_OF(loop_##suffix##_body, TYPE, RESULT, expr)                                    \
      HN_WIDE(void, loop_##suffix, loop_##suffix##_body,                                                     \
              (const void *from, void *to, int64_t n, const double *param), (from, to, n, param))
#define HN_UNARY_LOOP_OF(name, TYPE, RESULT, expr)                                                           \
  void name(const void *from, void *to, int64_t n, const double *param) {                                    \
    typedef TYPE T;                                                                                          \
    const T *x = from, p0 = (T)param[0], p1 = (T)param[1];                                                   \
    RESULT *y = to;                                                                                          \
    (void)p0, (void)p1;                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      T v = x[i];                                                                                            \
      y[i] = (RESULT)(expr);                                                                                 \
    }                                                                                                        \
  }
#define HN_UNARY_FLOAT_LOOPS(expr)                                                                           \
  HN_UNARY_LOOP(f32, float, float, expr) HN_UNARY_WIDE_LOOP(f64, double, double, expr)
#define HN_UNARY_FLOAT_TABLE                                                                                 \
  {                                                                                                          \
    .of = { [HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64 }                                       \
  }

/* Floats and signed integers. */
#define HN_UNARY_SIGNED_TABLE                                                                                \
  {                                                                                                          \
    .of = {                                                                                                  \
      [HONE_DTYPE_F32] = loop_f32,                                                                           \
      [HONE_DTYPE_F64] = loop_f64,                                                                           \
      [HONE_DTYPE_I8] = loop_i8,                                                                             \
      [HONE_DTYPE_I16] = loop_i16,                                                                           \
      [HONE_DTYPE_I32] = loop_i32,                                                                           \
      [HONE_DTYPE_I64] = loop_i64                                                                            \
    }                                                                                                        \
  }
#define HN_UNARY_NUMBER_TABLE                                                                                \
  {                                                                                                          \
    .of = { [HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64, HN_INT_LOOP_ENTRIES }                  \
  }
#define HN_INT_LOOP_ENTRIES                                                                                  \
  [HONE_DTYPE_I8] = loop_i8, [HONE_DTYPE_U8] = loop_u8, [HONE_DTYPE_I16] = loop_i16,                         \
  [HONE_DTYPE_U16] = loop_u16, [HONE_DTYPE_I32] = loop_i32, [HONE_DTYPE_U32] = loop_u32,                     \
  [HONE_DTYPE_I64] = loop_i64, [HONE_DTYPE_U64] = loop_u64

/* Output 0 is bool and has input 0's shape. */
hone_status hn_infer_test(const hone_infer *io, hone_error *error);
/* Runs the loop of input 0's dtype over all elements. param holds two numbers, or is NULL. */
hone_status hn_unary(hone_call *call, const hn_unary_loops *loops, const double *param, hone_error *error);

/* The elementwise function of an operator, for the macros below: HN_FUNCTION(HONE_PW_ADD, 2). */
#define HN_FUNCTION(code, n) (&(const hone_function){.op = (code), .operands = (n)})

/* What stands in the file of an operator without parameters behind its loops. */
#define HN_UNARY_PLAIN_OP(name, type, first, dtypes, fast)                                                   \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_unary(call, &loops, NULL, error);                                                              \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};                                           \
  HN_OP(name) = {HN_OP_HEAD,      .op_type = type, .since = first,         HN_UNARY_ARITY,                   \
                 .types = dtypes, .attrs = attrs,  .infer = hn_infer_same, .reference = reference,           \
                 .function = fast}

/* The whole file of an operator that is a formula of floats without parameters. */
#define HN_UNARY_OP(name, type, first, expr) HN_UNARY_FAST_OP(name, type, first, NULL, expr)
/* The same of one that pointwise programs have as a function. */
#define HN_UNARY_FAST_OP(name, type, first, fast, expr)                                                      \
  HN_UNARY_FLOAT_LOOPS(expr)                                                                                 \
  static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;                                                  \
  HN_UNARY_PLAIN_OP(name, type, first, HN_TYPES_FLOAT, fast)

/* The same of one that is a formula of the attribute `alpha` as p0, too; `otherwise`: where it is left out,
 * `code`: what pointwise programs call it, or HONE_PW_NONE. */
#define HN_UNARY_ALPHA_OP(unit, onnx_type, first, code, otherwise, expr)                                     \
  HN_UNARY_FLOAT_LOOPS(expr)                                                                                 \
  static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;                                                  \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    const double param[2] = {hone_node_float(call->node, "alpha", otherwise), 0};                            \
    return hn_unary(call, &loops, param, error);                                                             \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {                                                                    \
      {.name = "alpha", .type = HONE_ATTR_FLOAT}, HN_CONSUMED_INPUTS, {0}};                                  \
  static const hone_function function = {                                                                    \
      .op = (code), .operands = 1, .alpha = "alpha", .alpha_otherwise = otherwise};                          \
  HN_OP(unit) = {HN_OP_HEAD,                                                                                 \
                 .op_type = onnx_type,                                                                       \
                 .since = first,                                                                             \
                 HN_UNARY_ARITY,                                                                             \
                 .types = HN_TYPES_FLOAT,                                                                    \
                 .attrs = attrs,                                                                             \
                 .infer = hn_infer_same,                                                                     \
                 .reference = reference,                                                                     \
                 .function = (code) == HONE_PW_NONE ? NULL : &function}

#define HN_UNARY_ARITY .flags = HONE_OP_POINTWISE, HN_INPUTS(1, 1), HN_OUTPUTS(1, 1)
#define HN_BINARY_ARITY .flags = HONE_OP_POINTWISE, HN_INPUTS(2, 2), HN_OUTPUTS(1, 1)

/* The in-place hint that operators had before opset 6; it has no meaning for the result. */
#define HN_CONSUMED_INPUTS                                                                                   \
  { .name = "consumed_inputs", .type = HONE_ATTR_INTS, .until = 5 }

/* ---------------------------------------------------------------- z = f(x, y) */

/* n results from runs with steps sa and sb (0: one element for all, 1: one each). False: an operand is
 * outside the function's domain (integer division by zero). */
typedef bool (*hn_binary_loop)(const void *a, int64_t sa, const void *b, int64_t sb, void *c, int64_t n);

typedef struct hn_binary_loops {
  hn_binary_loop of[HONE_DTYPE_COUNT]; /* f16 and bf16 are computed by the f32 entry */
} hn_binary_loops;

/* Defines loop_<suffix>: T is the operands' type, W the type to compute in, x and y the operands. Three
 * loops, so that the compiler sees constant steps. */
#define HN_BINARY_LOOP(suffix, TYPE, WIDE, RESULT, expr)                                                     \
  static bool loop_##suffix(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {   \
    typedef TYPE T;                                                                                          \
    typedef WIDE W;                                                                                          \
    const T *a = pa, *b = pb;                                                                                \
    RESULT *c = pc;                                                                                          \
    if (sa && sb)                                                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                      \
        W x = (W)a[i], y = (W)b[i];                                                                          \
        c[i] = (RESULT)(expr);                                                                               \
      }                                                                                                      \
    else if (sa) {                                                                                           \
      const W y = (W)b[0];                                                                                   \
      for (int64_t i = 0; i < n; i++) {                                                                      \
        W x = (W)a[i];                                                                                       \
        c[i] = (RESULT)(expr);                                                                               \
      }                                                                                                      \
    } else {                                                                                                 \
      const W x = (W)a[0];                                                                                   \
      for (int64_t i = 0; i < n; i++) {                                                                      \
        W y = (W)b[i * sb];                                                                                  \
        c[i] = (RESULT)(expr);                                                                               \
      }                                                                                                      \
    }                                                                                                        \
    return true;                                                                                             \
  }
/* Of integers that are divided: false where y is 0. */
#define HN_DIVISION_LOOP(suffix, TYPE, expr)                                                                 \
  static bool loop_##suffix(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {   \
    const TYPE *a = pa, *b = pb;                                                                             \
    TYPE *c = pc;                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const TYPE x = a[i * sa], y = b[i * sb];                                                               \
      if (y == 0) return false;                                                                              \
      c[i] = (TYPE)(expr);                                                                                   \
    }                                                                                                        \
    return true;                                                                                             \
  }
#define HN_BINARY_FLOAT_LOOPS(expr)                                                                          \
  HN_BINARY_LOOP(f32, float, float, float, expr) HN_BINARY_LOOP(f64, double, double, double, expr)
/* Arithmetic modulo 2^bits: the same loop serves signed and unsigned integers. */
#define HN_BINARY_WRAP_LOOPS(expr)                                                                           \
  HN_BINARY_LOOP(w8, uint8_t, uint32_t, uint8_t, expr)                                                       \
  HN_BINARY_LOOP(w16, uint16_t, uint32_t, uint16_t, expr)                                                    \
  HN_BINARY_LOOP(w32, uint32_t, uint32_t, uint32_t, expr)                                                    \
  HN_BINARY_LOOP(w64, uint64_t, uint64_t, uint64_t, expr)
#define HN_WRAP_LOOP_ENTRIES                                                                                 \
  [HONE_DTYPE_U8] = loop_w8, [HONE_DTYPE_I8] = loop_w8, [HONE_DTYPE_U16] = loop_w16,                         \
  [HONE_DTYPE_I16] = loop_w16, [HONE_DTYPE_U32] = loop_w32, [HONE_DTYPE_I32] = loop_w32,                     \
  [HONE_DTYPE_U64] = loop_w64, [HONE_DTYPE_I64] = loop_w64
#define HN_BINARY_WRAP_INT_TABLE                                                                             \
  {                                                                                                          \
    .of = { HN_WRAP_LOOP_ENTRIES }                                                                           \
  }
#define HN_BINARY_WRAP_TABLE                                                                                 \
  {                                                                                                          \
    .of = { [HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64, HN_WRAP_LOOP_ENTRIES }                 \
  }
/* A loop for each signed and unsigned integer; R is the element type or uint8_t (bool). */
// clang-format off
#define HN_BINARY_INT_LOOPS(expr) \
  HN_BINARY_LOOP(i8, int8_t, int8_t, int8_t, expr) \
  HN_BINARY_LOOP(u8, uint8_t, uint8_t, uint8_t, expr) \
  HN_BINARY_LOOP(i16, int16_t, int16_t, int16_t, expr) \
  HN_BINARY_LOOP(u16, uint16_t, uint16_t, uint16_t, expr) \
  HN_BINARY_LOOP(i32, int32_t, int32_t, int32_t, expr) \
  HN_BINARY_LOOP(u32, uint32_t, uint32_t, uint32_t, expr) \
  HN_BINARY_LOOP(i64, int64_t, int64_t, int64_t, expr) \
  HN_BINARY_LOOP(u64, uint64_t, uint64_t, uint64_t, expr)
#define HN_BINARY_COMPARE_LOOPS(expr) \
  HN_BINARY_LOOP(f32, float, float, uint8_t, expr) \
  HN_BINARY_LOOP(f64, double, double, uint8_t, expr) \
  HN_BINARY_LOOP(i8, int8_t, int8_t, uint8_t, expr) \
  HN_BINARY_LOOP(u8, uint8_t, uint8_t, uint8_t, expr) \
  HN_BINARY_LOOP(i16, int16_t, int16_t, uint8_t, expr) \
  HN_BINARY_LOOP(u16, uint16_t, uint16_t, uint8_t, expr) \
  HN_BINARY_LOOP(i32, int32_t, int32_t, uint8_t, expr) \
  HN_BINARY_LOOP(u32, uint32_t, uint32_t, uint8_t, expr) \
  HN_BINARY_LOOP(i64, int64_t, int64_t, uint8_t, expr) \
  HN_BINARY_LOOP(u64, uint64_t, uint64_t, uint8_t, expr)
// clang-format on
#define HN_BINARY_NUMBER_TABLE                                                                               \
  {                                                                                                          \
    .of = { [HONE_DTYPE_F32] = loop_f32, [HONE_DTYPE_F64] = loop_f64, HN_INT_LOOP_ENTRIES }                  \
  }

/* Broadcasting as of the node's opset: multidirectional from 7 on, before that by the attributes `broadcast`
 * and `axis` (HN_LEGACY_BROADCAST). Operands must have one dtype. Output 0 gets it, or bool. */
hone_status hn_infer_binary(const hone_infer *io, hone_error *error);
hone_status hn_infer_compare(const hone_infer *io, hone_error *error);
/* b's descriptor with ones before and after, so that ordinary broadcasting places it as the node wants. */
hone_status hn_align_operand(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                             hone_tensor_desc *aligned, hone_error *error);
hone_status hn_binary_run(hone_call *call, const hn_binary_loops *loops, hone_error *error);
/* c = loop(a, b), a and b broadcast to c's dimensions; c may be a or b where the dimensions are equal. da and
 * db stand for the operands' descriptors. */
hone_status hn_binary_apply(hone_call *call, hn_binary_loop loop, const hone_tensor_desc *da, const void *a,
                            const hone_tensor_desc *db, const void *b, hone_tensor *c, hone_error *error);

#define HN_LEGACY_BROADCAST                                                                                  \
  {.name = "broadcast", .type = HONE_ATTR_INT, .until = 6},                                                  \
      {.name = "axis", .type = HONE_ATTR_INT, .until = 6}, HN_CONSUMED_INPUTS

/* The whole file of an operator with two operands; loops must be defined before. */
#define HN_BINARY_OP(name, type, first, dtypes, fast, inference)                                             \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_binary_run(call, &loops, error);                                                               \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {HN_LEGACY_BROADCAST, {0}};                                          \
  HN_OP(name) = {                                                                                            \
      HN_OP_HEAD,     .op_type = type,    .since = first,         HN_BINARY_ARITY, .types = dtypes,          \
      .attrs = attrs, .infer = inference, .reference = reference, .function = fast}

/* ---------------------------------------------------------------- y = f(f(x0, x1), x2)... */

hone_status hn_infer_variadic(const hone_infer *io, hone_error *error);
hone_status hn_variadic_run(hone_call *call, const hn_binary_loops *loops, hone_error *error);
void hn_variadic_cost(const hone_infer *io, hone_cost *cost);

#define HN_VARIADIC_ARITY .flags = HONE_OP_POINTWISE, HN_INPUTS(1, HONE_VARIADIC), HN_OUTPUTS(1, 1)

/* The whole file of an operator of any number of operands; loops must be defined before. */
#define HN_VARIADIC_OP(name, type, dtypes, fast)                                                             \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_variadic_run(call, &loops, error);                                                             \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};                                           \
  HN_OP(name) = {HN_OP_HEAD,                                                                                 \
                 .op_type = type,                                                                            \
                 .since = 1,                                                                                 \
                 HN_VARIADIC_ARITY,                                                                          \
                 .types = dtypes,                                                                            \
                 .attrs = attrs,                                                                             \
                 .infer = hn_infer_variadic,                                                                 \
                 .cost = hn_variadic_cost,                                                                   \
                 .reference = reference,                                                                     \
                 .function = fast}

#endif
