#include "backends/cuda/step/functions.h"

#include <math.h>

#include "base/half.h"

static const struct {
  const char *name;
  unsigned operands;
  unsigned instructions; /* of a value, where results are stored in 16 bits: of those that take many */
} functions[HONE_PW_COUNT] = {
    [HONE_PW_ADD] = {"add", 2, 0},
    [HONE_PW_SUB] = {"sub", 2, 0},
    [HONE_PW_MUL] = {"mul", 2, 0},
    [HONE_PW_DIV] = {"div", 2, 0},
    [HONE_PW_MIN] = {"min", 2, 0},
    [HONE_PW_MAX] = {"max", 2, 0},
    [HONE_PW_POW] = {"pow", 2, 0},
    [HONE_PW_PRELU] = {"prelu", 2, 0},
    [HONE_PW_EQ] = {"eq", 2, 0},
    [HONE_PW_LT] = {"lt", 2, 0},
    [HONE_PW_LE] = {"le", 2, 0},
    [HONE_PW_GT] = {"gt", 2, 0},
    [HONE_PW_GE] = {"ge", 2, 0},
    [HONE_PW_AND] = {"and", 2, 0},
    [HONE_PW_OR] = {"or", 2, 0},
    [HONE_PW_XOR] = {"xor", 2, 0},
    [HONE_PW_WHERE] = {"where", 3, 0},
    [HONE_PW_NOT] = {"not", 1, 0},
    [HONE_PW_NEG] = {"neg", 1, 0},
    [HONE_PW_ABS] = {"abs", 1, 0},
    [HONE_PW_SQRT] = {"sqrt", 1, 0},
    [HONE_PW_RECIPROCAL] = {"reciprocal", 1, 0},
    [HONE_PW_EXP] = {"exp", 1, 3},
    [HONE_PW_LOG] = {"log", 1, 12},
    [HONE_PW_ERF] = {"erf", 1, 30},
    [HONE_PW_TANH] = {"tanh", 1, 16},
    [HONE_PW_SIGMOID] = {"sigmoid", 1, 8},
    [HONE_PW_FLOOR] = {"floor", 1, 0},
    [HONE_PW_CEIL] = {"ceil", 1, 0},
    [HONE_PW_ROUND] = {"round", 1, 0},
    [HONE_PW_SIGN] = {"sign", 1, 0},
    [HONE_PW_RELU] = {"relu", 1, 0},
    [HONE_PW_CLIP] = {"clip", 1, 0},
    [HONE_PW_LEAKYRELU] = {"leakyrelu", 1, 0},
    [HONE_PW_ELU] = {"elu", 1, 20},
    [HONE_PW_SELU] = {"selu", 1, 20},
    [HONE_PW_CELU] = {"celu", 1, 25},
    [HONE_PW_HARDSIGMOID] = {"hardsigmoid", 1, 0},
    [HONE_PW_HARDSWISH] = {"hardswish", 1, 0},
    [HONE_PW_SILU] = {"silu", 1, 9},
    [HONE_PW_GELU_ERF] = {"gelu_erf", 1, 11},
    [HONE_PW_GELU_TANH] = {"gelu_tanh", 1, 14},
    [HONE_PW_SOFTPLUS] = {"softplus", 1, 30},
    [HONE_PW_SOFTSIGN] = {"softsign", 1, 8},
    [HONE_PW_MISH] = {"mish", 1, 15},
};

const char *hn_cuda_function(unsigned op, unsigned *operands) {
  *operands = op < HONE_PW_COUNT ? functions[op].operands : 0;
  return op < HONE_PW_COUNT ? functions[op].name : NULL;
}

unsigned hn_cuda_function_instructions(unsigned op) {
  return op < HONE_PW_COUNT ? functions[op].instructions : 0;
}

const char *hn_cuda_type(hone_dtype dtype) {
  switch (dtype) {
  case HONE_DTYPE_F32: return "f32";
  case HONE_DTYPE_F16: return "f16";
  case HONE_DTYPE_BF16: return "bf16";
  default: return NULL;
  }
}

/* The C type of an element: "float", "u16" (f16 and bf16, too), "i64"... NULL for strings and complex
 * numbers. */
static const char *element_name(hone_dtype dtype) {
  switch (dtype) {
  case HONE_DTYPE_F32: return "float";
  case HONE_DTYPE_F64: return "double";
  case HONE_DTYPE_U8:
  case HONE_DTYPE_BOOL: return "u8";
  case HONE_DTYPE_I8: return "i8";
  case HONE_DTYPE_U16:
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16: return "u16";
  case HONE_DTYPE_I16: return "i16";
  case HONE_DTYPE_U32: return "u32";
  case HONE_DTYPE_I32: return "i32";
  case HONE_DTYPE_U64: return "u64";
  case HONE_DTYPE_I64: return "i64";
  default: return NULL;
  }
}

const char *hn_cuda_value(hone_dtype dtype) { return hn_cuda_type(dtype) ? "float" : element_name(dtype); }

/* By integers: printf would write a decimal point as the application's locale has it. */
void hn_cuda_literal(hn_str *text, float value) {
  int exponent;
  if (!isfinite(value)) {
    hn_str_printf(text, "hn_from_bits(0x%08xu)", hn_f32_bits(value));
    return;
  }
  const long mantissa = (long)ldexpf(frexpf(fabsf(value), &exponent), 24);
  hn_str_printf(text, "%s0x%lxp%df", signbit(value) ? "-" : "", mantissa, mantissa ? exponent - 24 : 0);
}
