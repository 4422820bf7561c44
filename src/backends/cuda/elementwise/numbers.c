#include "backends/cuda/elementwise/numbers.h"

#include <string.h>

#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/step/functions.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "model/ops/math/clip_bounds.h"

/* Expressions of x and y, which have the type V; W is the unsigned type that V's arithmetic wraps in (V
 * itself for floats). NULL: not defined for that kind of number. */
typedef struct operation {
  const char *op;
  uint32_t operands; /* 0: any number, from the left */
  const char *of_float, *of_int;
  bool function; /* of_float is the name of a C function of double */
} operation;

#define WRAPS(sign) "(V)((W)x " sign " (W)y)"
#define BOTH(text) text, text

static const operation operations[] = {
    {"Add", 2, "x + y", WRAPS("+"), false},
    {"Sub", 2, "x - y", WRAPS("-"), false},
    {"Mul", 2, "x * y", WRAPS("*"), false},
    {"Div", 2, "x / y", "y == 0 ? 0 : (V)-1 < 0 && y == (V)-1 ? (V)(0 - (W)x) : (V)(x / y)", false},
    {"Sum", 0, "x + y", NULL, false},
    {"Mean", 0, "x + y", NULL, false},
    {"Min", 0, BOTH("x < y || x != x ? x : y"), false},
    {"Max", 0, BOTH("x > y || x != x ? x : y"), false},
    {"Equal", 2, BOTH("x == y"), false},
    {"Less", 2, BOTH("x < y"), false},
    {"LessOrEqual", 2, BOTH("x <= y"), false},
    {"Greater", 2, BOTH("x > y"), false},
    {"GreaterOrEqual", 2, BOTH("x >= y"), false},
    {"And", 2, NULL, "x && y", false},
    {"Or", 2, NULL, "x || y", false},
    {"Xor", 2, NULL, "(x != 0) != (y != 0)", false},
    {"Not", 1, NULL, "x == 0", false},
    {"BitwiseAnd", 2, NULL, "(V)(x & y)", false},
    {"BitwiseOr", 2, NULL, "(V)(x | y)", false},
    {"BitwiseXor", 2, NULL, "(V)(x ^ y)", false},
    {"BitwiseNot", 1, NULL, "(V)~x", false},
    {"Neg", 1, "-x", "(V)(0 - (W)x)", false},
    {"Abs", 1, "fabs", "x < 0 ? (V)(0 - (W)x) : x", true},
    {"Sign", 1, "x > 0 ? (V)1 : x < 0 ? (V)-1 : x", "(V)((x > 0) - (x < 0))", false},
    {"IsNaN", 1, "x != x", NULL, false},
    {"Reciprocal", 1, "1 / x", NULL, false},
    {"Relu", 1, "x < 0 ? (V)0 : x", "x < 0 ? (V)0 : x", false},
    {"Sqrt", 1, "sqrt", NULL, true},
    {"Exp", 1, "exp", NULL, true},
    {"Log", 1, "log", NULL, true},
    {"Erf", 1, "erf", NULL, true},
    {"Floor", 1, "floor", NULL, true},
    {"Ceil", 1, "ceil", NULL, true},
    {"Round", 1, "rint", NULL, true},
    {"Tanh", 1, "tanh", NULL, true},
    {"Sin", 1, "sin", NULL, true},
    {"Cos", 1, "cos", NULL, true},
    {"Tan", 1, "tan", NULL, true},
    {"Asin", 1, "asin", NULL, true},
    {"Acos", 1, "acos", NULL, true},
    {"Atan", 1, "atan", NULL, true},
    {"Sinh", 1, "sinh", NULL, true},
    {"Cosh", 1, "cosh", NULL, true},
    {"Asinh", 1, "asinh", NULL, true},
    {"Acosh", 1, "acosh", NULL, true},
    {"Atanh", 1, "atanh", NULL, true},
};

static const operation *find(const char *op) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (!strcmp(operations[i].op, op)) return &operations[i];
  return NULL;
}

/* The type that the arithmetic of t wraps in, below 32 bits unsigned int as well: products stay defined. */
static const char *wide(hone_dtype t) {
  if (hone_dtype_is_float(t)) return hn_cuda_value(t);
  return hone_dtype_size(t) == 8 ? "u64" : "u32";
}

static void literal(hn_str *text, double v, hone_dtype t) {
  if (t == HONE_DTYPE_F64) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    hn_str_printf(text, "hn_double(0x%llxull)", (unsigned long long)bits);
  } else {
    hn_cuda_literal(text, (float)v);
  }
}

static bool in_double(hone_dtype t) { return t == HONE_DTYPE_F64; }

/* ---------------------------------------------------------------- operators with attributes */

static void write_mod(const hone_step *s, hone_dtype t, hn_str *text) {
  if (hone_dtype_is_float(t)) {
    hn_str_printf(text, "    o0 = fmod%s(x, y);\n", in_double(t) ? "" : "f");
    if (!hone_node_int(s->node, "fmod", 0))
      hn_str_printf(text, "    o0 = o0 == 0 ? copysign%s((V)0, y) : (o0 < 0) != (y < 0) ? o0 + y : o0;\n",
                    in_double(t) ? "" : "f");
  } else if (!hone_dtype_is_signed_int(t))
    hn_str_puts(text, "    o0 = y == 0 ? 0 : (V)(x % y);\n");
  else if (hone_node_int(s->node, "fmod", 0))
    hn_str_puts(text, "    o0 = y == 0 || y == -1 ? 0 : (V)(x % y);\n");
  else
    hn_str_puts(
        text,
        "    o0 = y == 0 || y == -1 ? 0 : (V)(x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y);\n");
}

/* Integers by repeated squaring; mixed types in double, as the reference does. */
static void write_pow(const hone_step *s, hone_dtype t, hn_str *text) {
  const hone_dtype e = s->input[1].desc.dtype;
  if (hone_dtype_is_float(t) && !in_double(t) && hone_dtype_is_float(e) && !in_double(e)) {
    hn_str_puts(text, "    o0 = powf(x, i1);\n");
  } else if (hone_dtype_is_float(t) || hone_dtype_is_float(e)) {
    hn_str_printf(text, "    const double p = pow((double)x, (double)i1);\n    o0 = %s;\n",
                  hone_dtype_is_float(t) ? "(V)p"
                  : t == HONE_DTYPE_I64  ? "hn_trunc_i64(p)"
                                         : "(V)hn_clamp_i64(p, -0x7fffffffll - 1, 0x7fffffffll)");
  } else {
    hn_str_printf(text,
                  "    i64 e = (i64)i1;\n    u64 r = 1, b = (u64)(i64)x;\n%s"
                  "    if (e < 0) r = x == 1 ? 1 : x == -1 ? (e & 1 ? ~0ull : 1) : 0;\n"
                  "    else for (; e; e >>= 1, b *= b) if (e & 1) r *= b;\n    o0 = (V)r;\n",
                  e == HONE_DTYPE_U64 ? "    e &= 0x7fffffffffffffffll;\n" : "");
  }
}

/* Bounds that are operands are read at run time; those of old opsets are attributes of float types. */
static void write_clip(const hone_step *s, hone_dtype t, hn_str *text) {
  static const char *const beyond[] = {"<", ">"};
  const bool attributes = hone_node_opset(s->node) < 11 && hone_dtype_is_float(t);
  double bound[2];
  uint32_t next = 1;
  hn_clip_bounds(s->node, NULL, NULL, &bound[0], &bound[1]);
  hn_str_puts(text, "    o0 = x;\n");
  for (uint32_t i = 0; i < 2; i++) {
    const bool operand = i + 1 < s->n_anchor_inputs && s->input[i + 1].desc.dtype != HONE_DTYPE_NONE;
    if (!operand && !attributes) continue;
    hn_str_puts(text, "    { const V b = (V)");
    if (operand)
      hn_str_printf(text, "i%u", next++);
    else
      literal(text, bound[i], t);
    hn_str_printf(text, "; o0 = o0 %s b ? b : o0; }\n", beyond[i]);
  }
}

static void write_shift(const hone_step *s, hone_dtype t, hn_str *text) {
  const bool left = !strcmp(hone_node_string(s->node, "direction", ""), "LEFT");
  const int bits = 8 * (int)hone_dtype_size(t);
  if (!hone_dtype_is_signed_int(t))
    hn_str_printf(text, "    o0 = y >= %d ? 0 : (V)((u64)x %s y);\n", bits, left ? "<<" : ">>");
  else if (left)
    hn_str_printf(text, "    o0 = y < 0 || y >= %d ? 0 : (V)((u64)x << y);\n", bits);
  else
    hn_str_printf(text, "    o0 = y < 0 || y >= %d ? (V)(x < 0 ? -1 : 0) : (V)(x >> y);\n", bits);
}

static void write_is_inf(const hone_step *s, hone_dtype t, hn_str *text) {
  const char *infinity = in_double(t) ? "hn_double(0x7ff0000000000000ull)" : "hn_from_bits(0x7f800000u)";
  hn_str_puts(text, "    o0 = 0;\n");
  if (hone_node_int(s->node, "detect_positive", 1)) hn_str_printf(text, "    o0 |= x == %s;\n", infinity);
  if (hone_node_int(s->node, "detect_negative", 1)) hn_str_printf(text, "    o0 |= x == -%s;\n", infinity);
}

static void write_shrink(const hone_step *s, hone_dtype t, hn_str *text) {
  hn_str_puts(text, "    const V lambd = ");
  literal(text, hone_node_float(s->node, "lambd", 0.5f), t);
  hn_str_puts(text, ", bias = ");
  literal(text, hone_node_float(s->node, "bias", 0), t);
  hn_str_puts(text, ";\n    o0 = x < -lambd ? x + bias : x > lambd ? x - bias : (V)0;\n");
}

static void write_thresholded(const hone_step *s, hone_dtype t, hn_str *text) {
  hn_str_puts(text, "    o0 = x > ");
  literal(text, hone_node_float(s->node, "alpha", 1), t);
  hn_str_puts(text, " ? x : (V)0;\n");
}

static const struct special {
  const char *op;
  bool integers, floats;
  uint32_t operands;
  void (*write)(const hone_step *s, hone_dtype t, hn_str *text);
} specials[] = {
    {"Mod", true, true, 2, write_mod},
    {"Pow", true, true, 2, write_pow},
    {"Clip", true, true, 3, write_clip},
    {"BitShift", true, false, 2, write_shift},
    {"IsInf", false, true, 1, write_is_inf},
    {"Shrink", false, true, 1, write_shrink},
    {"ThresholdedRelu", false, true, 1, write_thresholded},
};

static const struct special *find_special(const char *op) {
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
    if (!strcmp(specials[i].op, op)) return &specials[i];
  return NULL;
}

/* ---------------------------------------------------------------- bodies */

static void write_where(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)s, (void)plan;
  hn_str_puts(text, "    o0 = i0 ? i1 : i2;\n");
}

/* Integers divided by zero end the run. What lies beyond a row is not looked at. */
static void refuse_zero(hn_str *text) {
  hn_str_puts(text, "    if (i1 == 0 && p->col + k < a->row) *(volatile u64 *)a->refused = a->node;\n");
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  const hone_dtype t = s->input[0].desc.dtype;
  const operation *o = find(s->anchor);
  const struct special *p = find_special(s->anchor);
  if (!strcmp(s->anchor, "Where")) {
    write_where(s, plan, text);
    return;
  }
  hn_str_printf(text, "    typedef %s V;\n    typedef %s W;\n    V x = i0;\n", hn_cuda_value(t), wide(t));
  if (!hone_dtype_is_float(t) && (!strcmp(s->anchor, "Div") || !strcmp(s->anchor, "Mod"))) refuse_zero(text);
  if (p) {
    if (p->operands == 2 && strcmp(s->anchor, "Pow")) hn_str_puts(text, "    const V y = i1;\n");
    p->write(s, t, text);
    return;
  }
  const char *expression = hone_dtype_is_float(t) ? o->of_float : o->of_int;
  if (o->function && hone_dtype_is_float(t)) {
    hn_str_printf(text, "    o0 = %s%s(x);\n", expression, in_double(t) ? "" : "f");
    return;
  }
  const bool chain = o->operands == 0;
  for (uint32_t i = 1; i < plan->n_in; i++)
    hn_str_printf(text, "    { const V y = i%u; %s = %s; }\n", i, chain ? "x" : "o0", expression);
  if (o->operands == 1) hn_str_printf(text, "    o0 = %s;\n", expression);
  if (chain && !strcmp(s->anchor, "Mean")) hn_str_printf(text, "    x = x / (V)%u;\n", plan->n_in);
  if (chain) hn_str_puts(text, "    o0 = x;\n");
}

/* ---------------------------------------------------------------- the tactic */

static bool types_fit(const hone_step *s, hone_reason *why) {
  const hone_dtype t = s->input[0].desc.dtype;
  const operation *o = find(s->anchor);
  const struct special *p = find_special(s->anchor);
  const bool is_float = hone_dtype_is_float(t);
  uint32_t same = 0; /* the first operand whose type must be input 0's */
  if (!strcmp(s->anchor, "Where"))
    same = 1;
  else if (!o && !p)
    return hn_refuse(why, "%s is not generated", s->anchor);
  else if (o ? !(is_float ? o->of_float : o->of_int) : !(is_float ? p->floats : p->integers))
    return hn_refuse(why, "not of %s", hone_dtype_name(t));
  if (o && o->operands && s->n_anchor_inputs != o->operands)
    return hn_refuse(why, "%u operands", s->n_anchor_inputs);
  /* f32 constants stand beside activations in 16 bits: all are values of float. */
  for (uint32_t i = same + 1; i < s->n_anchor_inputs && strcmp(s->anchor, "Pow"); i++) {
    const hone_dtype d = s->input[i].desc.dtype, first = s->input[same].desc.dtype;
    if (d != first && d != HONE_DTYPE_NONE && !(hn_cuda_type(d) && hn_cuda_type(first)))
      return hn_refuse(why, "operands are %s and %s", hone_dtype_name(first), hone_dtype_name(d));
  }
  if (hone_node_has(s->node, "axis")) return hn_refuse(why, "broadcasting as before opset 7");
  return true;
}

static bool describe(const hone_step *s, hn_cuda_elementwise *plan, hone_reason *why) {
  if (s->n_epilogue) return hn_refuse(why, "no epilogue is generated");
  if (!types_fit(s, why)) return false;
  return hn_cuda_elementwise_step(plan, s, s->n_anchor_inputs, NULL, why);
}

bool hn_cuda_numbers_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, why);
}

double hn_cuda_numbers_cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

hone_status hn_cuda_numbers_run(const hone_step_run *run, hone_error *error) {
  return hn_cuda_elementwise_run(run, run->step->n_anchor_inputs, body, error);
}
