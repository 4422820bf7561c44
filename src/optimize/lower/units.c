/* From nodes to units. */
#include "optimize/lower/lowering.h"

#include "base/error.h"
#include "model/ops/math/clip_bounds.h"

#include <math.h>
#include <string.h>

bool hn_scalar_constant(const hn_value *v, float *out) {
  if (!v || !v->constant || v->constant->desc.dtype != HONE_DTYPE_F32 ||
      hone_desc_count(&v->constant->desc) != 1)
    return false;
  *out = *(const float *)v->constant->data;
  return true;
}

/* Operators that are one function of their tensor operands. n: operand count, 0: variadic chain. */
static const struct {
  const char *op_type;
  uint8_t op, n;
  const char *alpha, *beta; /* attributes */
  float alpha_default, beta_default;
} functions[] = {
    {"Relu", HONE_PW_RELU, 1, 0, 0, 0, 0},
    {"Sigmoid", HONE_PW_SIGMOID, 1, 0, 0, 0, 0},
    {"Tanh", HONE_PW_TANH, 1, 0, 0, 0, 0},
    {"Exp", HONE_PW_EXP, 1, 0, 0, 0, 0},
    {"Log", HONE_PW_LOG, 1, 0, 0, 0, 0},
    {"Sqrt", HONE_PW_SQRT, 1, 0, 0, 0, 0},
    {"Reciprocal", HONE_PW_RECIPROCAL, 1, 0, 0, 0, 0},
    {"Neg", HONE_PW_NEG, 1, 0, 0, 0, 0},
    {"Abs", HONE_PW_ABS, 1, 0, 0, 0, 0},
    {"Erf", HONE_PW_ERF, 1, 0, 0, 0, 0},
    {"Floor", HONE_PW_FLOOR, 1, 0, 0, 0, 0},
    {"Ceil", HONE_PW_CEIL, 1, 0, 0, 0, 0},
    {"Round", HONE_PW_ROUND, 1, 0, 0, 0, 0},
    {"Sign", HONE_PW_SIGN, 1, 0, 0, 0, 0},
    {"Not", HONE_PW_NOT, 1, 0, 0, 0, 0},
    {"LeakyRelu", HONE_PW_LEAKYRELU, 1, "alpha", 0, 0.01f, 0},
    {"Elu", HONE_PW_ELU, 1, "alpha", 0, 1.0f, 0},
    {"Selu", HONE_PW_SELU, 1, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Celu", HONE_PW_CELU, 1, "alpha", 0, 1.0f, 0},
    {"HardSigmoid", HONE_PW_HARDSIGMOID, 1, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", HONE_PW_HARDSWISH, 1, 0, 0, 1.0f / 6, 0.5f},
    {"Softplus", HONE_PW_SOFTPLUS, 1, 0, 0, 0, 0},
    {"Softsign", HONE_PW_SOFTSIGN, 1, 0, 0, 0, 0},
    {"Mish", HONE_PW_MISH, 1, 0, 0, 0, 0},
    {"Swish", HONE_PW_SILU, 1, "alpha", 0, 1.0f, 0},
    {"Add", HONE_PW_ADD, 2, 0, 0, 0, 0},
    {"Sub", HONE_PW_SUB, 2, 0, 0, 0, 0},
    {"Mul", HONE_PW_MUL, 2, 0, 0, 0, 0},
    {"Div", HONE_PW_DIV, 2, 0, 0, 0, 0},
    {"Pow", HONE_PW_POW, 2, 0, 0, 0, 0},
    {"PRelu", HONE_PW_PRELU, 2, 0, 0, 0, 0},
    {"Equal", HONE_PW_EQ, 2, 0, 0, 0, 0},
    {"Less", HONE_PW_LT, 2, 0, 0, 0, 0},
    {"LessOrEqual", HONE_PW_LE, 2, 0, 0, 0, 0},
    {"Greater", HONE_PW_GT, 2, 0, 0, 0, 0},
    {"GreaterOrEqual", HONE_PW_GE, 2, 0, 0, 0, 0},
    {"And", HONE_PW_AND, 2, 0, 0, 0, 0},
    {"Or", HONE_PW_OR, 2, 0, 0, 0, 0},
    {"Xor", HONE_PW_XOR, 2, 0, 0, 0, 0},
    {"Where", HONE_PW_WHERE, 3, 0, 0, 0, 0},
    {"Sum", HONE_PW_ADD, 0, 0, 0, 0, 0},
    {"Max", HONE_PW_MAX, 0, 0, 0, 0, 0},
    {"Min", HONE_PW_MIN, 0, 0, 0, 0, 0},
};

/* Bounds that are known, in the order that the function needs; others are left to the reference. */
static bool clip_bounds(const hone_node *n, float *lo, float *hi) {
  const hone_tensor *bound[2] = {NULL, NULL};
  double low, high;
  for (uint32_t i = 1; i <= 2 && i < n->n_in; i++) {
    float number;
    if (!n->in[i]) continue;
    if (!hn_scalar_constant(n->in[i], &number)) return false;
    bound[i - 1] = n->in[i]->constant;
  }
  hn_clip_bounds(n, bound[0], bound[1], &low, &high);
  *lo = (float)low;
  *hi = (float)high;
  return low <= high;
}

/* Before opset 7 operands may lie elsewhere than at the last dimensions: where an attribute says, or, a
 * PRelu's slopes, at dimension 1. */
static bool lies_elsewhere(const hone_node *n) {
  if (hn_node_attr(n, "axis")) return true;
  if (n->opset >= 7 || strcmp(n->op_type, "PRelu") != 0 || n->n_in != 2 || !n->in[0] || !n->in[1])
    return false;
  const hone_tensor_desc *x = &n->in[0]->desc, *slope = &n->in[1]->desc;
  return (x->rank < 0 || x->rank > 2) && (slope->rank < 0 || (slope->rank == 1 && slope->dim[0] != 1));
}

bool hn_pointwise_of(const hone_node *n, hn_unit *u) {
  if (n->n_out != 1 || !n->out[0] || !hone_desc_known(&n->out[0]->desc)) return false;
  if (!hn_pointwise_function(n, u)) return false;
  for (uint32_t i = 0; i < u->n_in; i++)
    if (!hone_desc_known(&n->in[i]->desc)) return false;
  return true;
}

bool hn_pointwise_function(const hone_node *n, hn_unit *u) {
  if (n->domain[0] || n->n_out != 1 || !n->out[0]) return false;
  if (lies_elsewhere(n)) return false;
  const hone_tensor_desc *od = &n->out[0]->desc;
  if (od->dtype != HONE_DTYPE_F32 && od->dtype != HONE_DTYPE_BOOL) return false;
  uint32_t operands = 0;
  u->chain = false;
  if (strcmp(n->op_type, "Clip") == 0) {
    if (!clip_bounds(n, &u->alpha, &u->beta)) return false;
    u->op = HONE_PW_CLIP;
    operands = 1;
  } else if (strcmp(n->op_type, "Gelu") == 0) {
    u->op = strcmp(hone_node_string(n, "approximate", "none"), "tanh") == 0 ? HONE_PW_GELU_TANH
                                                                            : HONE_PW_GELU_ERF;
    operands = 1;
  } else {
    size_t k = 0, count = sizeof functions / sizeof *functions;
    while (k < count && strcmp(functions[k].op_type, n->op_type) != 0) k++;
    if (k == count) return false;
    u->op = functions[k].op;
    u->alpha = functions[k].alpha ? hone_node_float(n, functions[k].alpha, functions[k].alpha_default)
                                  : functions[k].alpha_default;
    u->beta = functions[k].beta ? hone_node_float(n, functions[k].beta, functions[k].beta_default)
                                : functions[k].beta_default;
    operands = functions[k].n ? functions[k].n : n->n_in;
    u->chain = functions[k].n == 0 && operands != 2; /* a Sum of two is an Add */
  }
  if (operands > n->n_in || operands > HN_UNIT_OPERANDS) return false;
  for (uint32_t i = 0; i < operands; i++) {
    if (!n->in[i]) return false;
    hone_dtype d = n->in[i]->desc.dtype;
    if (d != HONE_DTYPE_F32 && d != HONE_DTYPE_BOOL) return false;
  }
  u->n_in = operands;
  u->in = n->in;
  return true;
}

static bool is_view(const hone_node *n) {
  return n->op && (n->op->flags & HONE_OP_VIEW) && n->n_out >= 1 && n->out[0] && n->n_in >= 1 && n->in[0] &&
         (n->n_out == 1 || !n->out[1]) && n->in[0]->kind == HN_TENSOR;
}

const char *hn_anchor_of(hn_lowering *l, const hone_node *n) {
  return n->domain[0] ? hn_arena_printf(&l->plan->arena, "%s.%s", n->domain, n->op_type) : n->op_type;
}

hone_status hn_lower_units(hn_lowering *l, hone_error *error) {
  const hn_graph *g = l->plan->model->graph;
  uint32_t order = 0;
  for (hone_node *n = g->first; n; n = n->next, order++) {
    hn_unit *u = HN_NEW(l->temp, hn_unit);
    const hone_node **self = HN_NEW(l->temp, const hone_node *);
    if (!u || !self || !hn_vec_push(&l->units, u)) return hn_fail_memory(error, sizeof *u, "lowering");
    *self = n;
    *u = (hn_unit){.kind = HN_UNIT_NODE,
                   .anchor = hn_anchor_of(l, n),
                   .node = n,
                   .n_in = n->n_in,
                   .in = n->in,
                   .out = n->n_out ? n->out[0] : NULL,
                   .n_nodes = 1,
                   .nodes = self,
                   .order = order};
    if (!u->anchor) return hn_fail_memory(error, 0, "lowering");
    if (l->plan->reference)
      ;
    else if (is_view(n))
      u->kind = HN_UNIT_VIEW;
    else if (hn_pointwise_of(n, u))
      u->kind = HN_UNIT_POINTWISE;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) l->by_value[n->out[i]->id] = u;
  }
  return HONE_OK;
}
