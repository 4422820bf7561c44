/* See node_calls.h. */
#include "cli/commands/op/node_calls.h"

#include "cli/commands/op/formulas.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool op_is_list(const hone_subgraph_value *v) {
  return v->node < 0 && v->constant && v->desc.dtype == HONE_DTYPE_I64 && v->desc.rank == 1;
}

bool op_is_operand(const hone_subgraph_value *v) { return v->node < 0 && !v->is_number && !op_is_list(v); }

typedef struct line {
  const hone_subgraph *p;
  const hone_subgraph_node *n;
  uint32_t k;
  op_text *out;
} line;

static const hone_subgraph_value *operand(const line *l, uint32_t i) {
  return i < l->n->n_in && l->n->in[i] >= 0 ? &l->p->value[l->n->in[i]] : NULL;
}

/* "&x[2]", "&t1", "NULL" */
static void put_value(const line *l, const hone_subgraph_value *v) {
  uint32_t at = 0;
  if (!v || v->is_number) {
    op_put(l->out, "NULL");
    return;
  }
  for (const hone_subgraph_value *x = l->p->value; x < v; x++) at += op_is_operand(x);
  if (v->node < 0)
    op_put(l->out, "&x[%u]", at);
  else
    op_put(l->out, "&%s", v->name);
}

static void put_result(const line *l) {
  if (l->k + 1 == l->p->n_nodes)
    op_put(l->out, "y");
  else
    op_put(l->out, "&%s", l->p->value[l->n->out].name);
}

static void put_list(const line *l, const char *name, const int64_t *list, size_t n) {
  op_put(l->out, "  const int64_t %s%u[] = {", name, l->k);
  for (size_t i = 0; i < n; i++) op_put(l->out, "%s%lld", i ? ", " : "", (long long)list[i]);
  op_put(l->out, n ? "};\n" : "0};\n");
}

/* Axes or sizes: of the attribute, or of input i. False: they are known only at run time. */
static bool list_of(const line *l, const char *attr, uint32_t i, int64_t list[HONE_MAX_RANK], size_t *n) {
  const hone_subgraph_value *v = operand(l, i);
  *n = 0;
  if (!v) {
    const int64_t *given = attr ? hone_node_ints(l->n->node, attr, n) : NULL;
    if (*n > HONE_MAX_RANK) return false;
    for (size_t k = 0; k < *n; k++) list[k] = given[k];
    return true;
  }
  if (v->is_number) {
    list[(*n)++] = (int64_t)v->number;
    return true;
  }
  if (!op_is_list(v) || v->desc.dim[0] > HONE_MAX_RANK) return false;
  *n = (size_t)v->desc.dim[0];
  memcpy(list, v->constant->data, *n * sizeof *list);
  return true;
}

static bool is_value(const line *l, uint32_t i) {
  const hone_subgraph_value *v = operand(l, i);
  return v && !v->is_number && !op_is_list(v);
}

/* ---- kinds of nodes: NULL, or why not */

static const char *each(const line *l) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < l->n->n_in; i++) {
    const hone_subgraph_value *v = operand(l, i);
    if (!v) return "has an operand that is left out";
    if (v->is_number && !isfinite(v->number)) return "has an operand that is no finite number";
    if (!v->is_number && v->desc.rank > rank) rank = v->desc.rank;
  }
  if (rank != l->p->value[l->n->out].desc.rank)
    return "has a number with more dimensions than its other operand";
  op_put(l->out, "  HONE_EACH(n, ");
  put_result(l);
  for (uint32_t i = 0; i < 3; i++) {
    op_put(l->out, ", ");
    put_value(l, operand(l, i));
  }
  op_put(l->out, ", ");
  op_put_formula(l->p, l->n, OP_EACH, l->out);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *reduce(const line *l, const char *how) {
  int64_t axes[HONE_MAX_RANK];
  size_t n;
  if (!list_of(l, "axes", 1, axes, &n)) return "has axes that are known only at run time";
  if (!n && hone_node_int(l->n->node, "noop_with_empty_axes", 0)) return "reduces nothing";
  put_list(l, "axes", axes, n);
  op_put(l->out, "  hone_reduce(n, %s, ", how);
  put_value(l, operand(l, 0));
  op_put(l->out, ", axes%u, %zu, %s, ", l->k, n, hone_node_int(l->n->node, "keepdims", 1) ? "true" : "false");
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *pool(const line *l) {
  const int32_t rank = operand(l, 0)->desc.rank;
  int64_t axes[HONE_MAX_RANK];
  for (int32_t i = 2; i < rank; i++) axes[i - 2] = i;
  if (rank < 3) return "has an image without sides";
  put_list(l, "axes", axes, (size_t)rank - 2);
  op_put(l->out, "  hone_reduce(n, HONE_MEAN, ");
  put_value(l, operand(l, 0));
  op_put(l->out, ", axes%u, %d, true, ", l->k, rank - 2);
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *softmax(const line *l) {
  const int32_t rank = operand(l, 0)->desc.rank;
  const bool old = hone_node_opset(l->n->node) < 13;
  const int64_t axis = hone_node_int(l->n->node, "axis", old ? 1 : -1);
  if (old && axis != -1 && axis != rank - 1) return "is one over several dimensions";
  op_put(l->out, "  hone_softmax(n, ");
  put_value(l, operand(l, 0));
  op_put(l->out, ", %lld, ", (long long)axis);
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *matmul(const line *l) {
  for (uint32_t i = 0; i < 2; i++)
    if (!is_value(l, i) || operand(l, i)->desc.rank < 2) return "has an operand that is no matrix";
  op_put(l->out, "  hone_matmul(n, ");
  put_value(l, operand(l, 0));
  op_put(l->out, ", ");
  put_value(l, operand(l, 1));
  op_put(l->out, ", ");
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *gemm(const line *l) {
  static const char *const trans[] = {"transA", "transB"};
  char of[2][40];
  const float alpha = hone_node_float(l->n->node, "alpha", 1), beta = hone_node_float(l->n->node, "beta", 1);
  const hone_subgraph_value *bias = operand(l, 2);
  if (!is_value(l, 0) || !is_value(l, 1) || (bias && !is_value(l, 2)))
    return "has an operand that is no matrix";
  op_put(l->out, "  hone_value product%u, left%u, right%u;\n  const int64_t turned%u[] = {1, 0};\n", l->k,
         l->k, l->k, l->k);
  for (uint32_t i = 0; i < 2; i++) {
    const bool turned = hone_node_int(l->n->node, trans[i], 0) != 0;
    snprintf(of[i], sizeof of[i], "%s%u", i ? "right" : "left", l->k);
    if (turned) {
      op_put(l->out, "  hone_transpose(n, ");
      put_value(l, operand(l, i));
      op_put(l->out, ", turned%u, &%s);\n", l->k, of[i]);
    } else {
      op_put(l->out, "  %s = *", of[i]);
      put_value(l, operand(l, i));
      op_put(l->out, ";\n");
    }
  }
  op_put(l->out, "  (void)turned%u;\n  hone_matmul(n, &%s, &%s, &product%u);\n  HONE_EACH(n, ", l->k, of[0],
         of[1], l->k);
  put_result(l);
  op_put(l->out, ", &product%u, ", l->k);
  put_value(l, bias);
  op_put(l->out, bias ? ", NULL, %.9g * a + %.9g * b);\n" : ", NULL, %.9g * a);\n", (double)alpha,
         (double)beta);
  return NULL;
}

static const char *conv(const line *l) {
  static const char *const lists[] = {"strides", "pads", "dilations"};
  const hone_node *node = l->n->node;
  const hone_subgraph_value *bias = operand(l, 2);
  size_t n[3];
  const int64_t *list[3];
  if (!is_value(l, 0) || !is_value(l, 1) || (bias && !is_value(l, 2)))
    return "has an operand that is a number";
  if (strcmp(hone_node_string(node, "auto_pad", "NOTSET"), "NOTSET") != 0)
    return "has pads that follow its sizes";
  for (int i = 0; i < 3; i++) {
    list[i] = hone_node_ints(node, lists[i], &n[i]);
    if (n[i]) put_list(l, lists[i], list[i], n[i]);
  }
  op_put(l->out, "  const hone_conv_form form%u = {%lld", l->k, (long long)hone_node_int(node, "group", 1));
  for (int i = 0; i < 3; i++)
    if (n[i])
      op_put(l->out, ", %s%u", lists[i], l->k);
    else
      op_put(l->out, ", NULL");
  op_put(l->out, "};\n  hone_conv(n, ");
  for (uint32_t i = 0; i < 3; i++) {
    put_value(l, operand(l, i));
    op_put(l->out, ", ");
  }
  op_put(l->out, "&form%u, ", l->k);
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *batch_normal(const line *l) {
  if (hone_node_int(l->n->node, "training_mode", 0)) return "is one of training";
  for (uint32_t i = 0; i < 5; i++)
    if (!is_value(l, i)) return "has an operand that is a number";
  op_put(l->out, "  hone_batch_normal(n, ");
  for (uint32_t i = 0; i < 5; i++) {
    put_value(l, operand(l, i));
    op_put(l->out, ", ");
  }
  op_put(l->out, "%.9g, ", (double)hone_node_float(l->n->node, "epsilon", 1e-5f));
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *transpose(const line *l) {
  int64_t order[HONE_MAX_RANK];
  const int32_t rank = operand(l, 0)->desc.rank;
  size_t n;
  const int64_t *perm = hone_node_ints(l->n->node, "perm", &n);
  for (int32_t i = 0; i < rank; i++) order[i] = n ? perm[i] : rank - 1 - i;
  put_list(l, "order", order, (size_t)rank);
  op_put(l->out, "  hone_transpose(n, ");
  put_value(l, operand(l, 0));
  op_put(l->out, ", order%u, ", l->k);
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

/* Reshape, Squeeze, Unsqueeze. */
static const char *view(const line *l, const char *call, const char *attr) {
  int64_t list[HONE_MAX_RANK];
  size_t n;
  if (!list_of(l, attr, 1, list, &n)) return "has sizes or axes that are known only at run time";
  for (size_t i = 0; i < n; i++)
    if (!attr && list[i] == 0 && hone_node_int(l->n->node, "allowzero", 0)) return "makes a dimension of 0";
  put_list(l, "dims", list, n);
  op_put(l->out, "  %s(n, ", call);
  put_value(l, operand(l, 0));
  op_put(l->out, ", dims%u, %zu, ", l->k, n);
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

static const char *flatten(const line *l) {
  op_put(l->out, "  hone_flatten(n, ");
  put_value(l, operand(l, 0));
  op_put(l->out, ", %lld, ", (long long)hone_node_int(l->n->node, "axis", 1));
  put_result(l);
  op_put(l->out, ");\n");
  return NULL;
}

/* By the operator; what is not here may be a function of its operands' elements. */
static const char *known(const line *l, const char *op, bool *found) {
  static const struct {
    const char *op, *how;
  } reductions[] = {{"ReduceSum", "HONE_SUM"},
                    {"ReduceMean", "HONE_MEAN"},
                    {"ReduceMax", "HONE_MOST"},
                    {"ReduceMin", "HONE_LEAST"},
                    {"ReduceSumSquare", "HONE_SUM_SQUARE"},
                    {"ReduceL2", "HONE_L2"}};
  static const struct {
    const char *op;
    const char *(*put)(const line *l);
  } others[] = {{"GlobalAveragePool", pool},
                {"Softmax", softmax},
                {"MatMul", matmul},
                {"Gemm", gemm},
                {"Conv", conv},
                {"BatchNormalization", batch_normal},
                {"Transpose", transpose},
                {"Flatten", flatten}};
  static const struct {
    const char *op, *call, *attr;
  } views[] = {{"Reshape", "hone_reshape", NULL},
               {"Squeeze", "hone_squeeze", "axes"},
               {"Unsqueeze", "hone_unsqueeze", "axes"}};
  *found = true;
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
    if (strcmp(op, reductions[i].op) == 0) return reduce(l, reductions[i].how);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(op, others[i].op) == 0) return others[i].put(l);
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    if (strcmp(op, views[i].op) == 0) return view(l, views[i].call, views[i].attr);
  *found = false;
  return NULL;
}

const char *op_put_node(const hone_subgraph *p, uint32_t k, op_text *out) {
  const line l = {p, &p->node[k], k, out};
  const char *op = hone_node_op(l.n->node);
  for (uint32_t i = 0; i < l.n->n_in; i++) {
    const hone_subgraph_value *v = operand(&l, i);
    if (v && !v->is_number && !op_is_list(v) && v->desc.dtype != HONE_DTYPE_F32)
      return "has an operand that is not f32";
    if (v && v->desc.rank < 0) return "has an operand whose number of dimensions is not known";
  }
  if (*hone_node_domain(l.n->node)) return "is of another domain than ONNX's";
  if (op_formula_of(l.n)) return each(&l);
  if (!is_value(&l, 0)) return "reads nothing but numbers";
  bool found;
  const char *why = known(&l, op, &found);
  return found ? why : "cannot be written down by itself";
}
