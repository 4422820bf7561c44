/* See formulas.h. */
#include "cli/commands/op/formulas.h"

#include <stdio.h>
#include <string.h>

/* How a function of ONNX is written in f64, with vectors, and on a GPU. $0, $1...: operands; A, B:
 * attributes. */
struct op_formula {
  const char *op;
  uint32_t operands;
  const char *wide, *vector, *gpu; /* the last two NULL: in f64 alone */
  const char *alpha, *beta;        /* attributes, with what they are where absent */
  float alpha_otherwise, beta_otherwise;
};

static const op_formula formulas[] = {
    {"Add", 2, "$0 + $1", "$0 + $1", "$0 + $1", NULL, NULL, 0, 0},
    {"Sub", 2, "$0 - $1", "$0 - $1", "$0 - $1", NULL, NULL, 0, 0},
    {"Mul", 2, "$0 * $1", "$0 * $1", "$0 * $1", NULL, NULL, 0, 0},
    {"Div", 2, "$0 / $1", "$0 / $1", "$0 / $1", NULL, NULL, 0, 0},
    {"Neg", 1, "-$0", "-$0", "-$0", NULL, NULL, 0, 0},
    {"Identity", 1, "$0", "$0", "$0", NULL, NULL, 0, 0},
    {"Abs", 1, "fabs($0)", "hone_abs($0)", "fabsf($0)", NULL, NULL, 0, 0},
    {"Reciprocal", 1, "1 / $0", "1.0f / $0", "1.0f / $0", NULL, NULL, 0, 0},
    {"Sqrt", 1, "sqrt($0)", "hone_sqrt($0)", "sqrtf($0)", NULL, NULL, 0, 0},
    {"Exp", 1, "exp($0)", "hone_exp($0)", "expf($0)", NULL, NULL, 0, 0},
    {"Tanh", 1, "tanh($0)", "hone_tanh($0)", "tanhf($0)", NULL, NULL, 0, 0},
    {"Sigmoid", 1, "1 / (1 + exp(-$0))", "hone_sigmoid($0)", "1.0f / (1.0f + expf(-$0))", NULL, NULL, 0, 0},
    {"Relu", 1, "$0 < 0 ? 0 : $0", "hone_max($0, hone_all(0))", "$0 < 0.0f ? 0.0f : $0", NULL, NULL, 0, 0},
    {"LeakyRelu", 1, "$0 < 0 ? A * $0 : $0", "hone_select($0 < 0.0f, A * $0, $0)", "$0 < 0.0f ? A * $0 : $0",
     "alpha", NULL, 0.01f, 0},
    {"HardSigmoid", 1, "A * $0 + B < 0 ? 0 : A * $0 + B > 1 ? 1 : A * $0 + B",
     "hone_min(hone_max(A * $0 + B, hone_all(0)), hone_all(1))", "fminf(fmaxf(A * $0 + B, 0.0f), 1.0f)",
     "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", 1, "$0 * ($0 < -3 ? 0 : $0 > 3 ? 1 : $0 / 6 + 0.5)",
     "$0 * hone_min(hone_max($0 / 6.0f + 0.5f, hone_all(0)), hone_all(1))",
     "$0 * fminf(fmaxf($0 / 6.0f + 0.5f, 0.0f), 1.0f)", NULL, NULL, 0, 0},
    {"Max", 2, "$0 < $1 ? $1 : $0", "hone_max($0, $1)", "$0 < $1 ? $1 : $0", NULL, NULL, 0, 0},
    {"Min", 2, "$1 < $0 ? $1 : $0", "hone_min($0, $1)", "$1 < $0 ? $1 : $0", NULL, NULL, 0, 0},
    {"Pow", 2, "pow($0, $1)", NULL, NULL, NULL, NULL, 0, 0},
    {"Log", 1, "log($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Erf", 1, "erf($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Sin", 1, "sin($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Cos", 1, "cos($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Tan", 1, "tan($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Asin", 1, "asin($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Acos", 1, "acos($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Atan", 1, "atan($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Sinh", 1, "sinh($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Cosh", 1, "cosh($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Asinh", 1, "asinh($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Acosh", 1, "acosh($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Atanh", 1, "atanh($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Sign", 1, "$0 < 0 ? -1 : $0 > 0 ? 1 : $0", NULL, NULL, NULL, NULL, 0, 0},
    {"Floor", 1, "floor($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Ceil", 1, "ceil($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Round", 1, "nearbyint($0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Softplus", 1, "log1p(exp(-fabs($0))) + ($0 < 0 ? 0 : $0)", NULL, NULL, NULL, NULL, 0, 0},
    {"Softsign", 1, "$0 / (1 + fabs($0))", NULL, NULL, NULL, NULL, 0, 0},
    {"Elu", 1, "$0 < 0 ? A * expm1($0) : $0", NULL, NULL, "alpha", NULL, 1, 0},
    {"Clip", 3, "$0 < $1 ? $1 : $0 > $2 ? $2 : $0", "hone_min(hone_max($0, $1), $2)",
     "$0 < $1 ? $1 : $0 > $2 ? $2 : $0", NULL, NULL, 0, 0}};

const op_formula *op_formula_of(const hone_subgraph_node *n) {
  for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
    if (strcmp(formulas[i].op, hone_node_op(n->node)) == 0 && !*hone_node_domain(n->node) &&
        formulas[i].operands == n->n_in)
      return &formulas[i];
  return NULL;
}

bool op_formula_has_vectors(const op_formula *f) { return f->vector != NULL; }

static void put_number(double v, op_form f, op_text *out) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.9g", v);
  const char *point = strpbrk(digits, ".en") ? "" : ".0";
  if (f == OP_VECTOR)
    op_put(out, "hone_all(%s%sf)", digits, point);
  else
    op_put(out, v < 0 ? "(%s%s%s)" : "%s%s%s", digits, point, f == OP_GPU ? "f" : "");
}

static void put_operand(const hone_subgraph *p, const hone_subgraph_node *n, int k, op_form f, op_text *out) {
  const hone_subgraph_value *v = &p->value[n->in[k]];
  if (v->is_number)
    put_number(v->number, f, out);
  else if (f == OP_EACH)
    op_put_char(out, (char)('a' + k));
  else
    op_put(out, "%s", v->name);
}

void op_put_formula(const hone_subgraph *p, const hone_subgraph_node *n, op_form f, op_text *out) {
  const op_formula *m = op_formula_of(n);
  for (const char *c = f == OP_WIDE || f == OP_EACH ? m->wide
                       : f == OP_VECTOR             ? m->vector
                                                    : m->gpu;
       *c; c++) {
    const bool word = (c[1] >= 'a' && c[1] <= 'z') || (c[1] >= 'A' && c[1] <= 'Z');
    if (*c == '$')
      put_operand(p, n, *++c - '0', f, out);
    else if (*c == 'A' && !word)
      put_number((double)hone_node_float(n->node, m->alpha, m->alpha_otherwise), f == OP_VECTOR ? OP_GPU : f,
                 out);
    else if (*c == 'B' && !word)
      put_number((double)hone_node_float(n->node, m->beta, m->beta_otherwise), f == OP_VECTOR ? OP_GPU : f,
                 out);
    else
      op_put_char(out, *c);
  }
}
