/* What stays f32 in plans that store values narrow (fp16, bf16): what quantising operators read, and the
 * scales, zero points and sums of integers around them. A step of 8 bits computed from rounded values is
 * another step, and sums of integers are beyond f16. So do places: numbers that say which row or column is
 * meant, or which time. bf16 has no odd number above 256, and what is compared, cut to an integer or turned
 * by rounded places is another element. */
#include "optimize/lower/lowering.h"

#include "base/error.h"
#include "base/fault.h"

#include <string.h>

/* PARAMETER: a scale or zero point, or computed for one. SUM: of products of integers. PLAIN: computed from
 * what callers give, constants and integers without any product. PLACE: plain, and something wants it exact.
 */
enum { EXACT = 1, PARAMETER = 2, SUM = 4, PLAIN = 8, PLACE = 16, DEEP = 64 };

static bool renames(const hone_node *n) {
  return n && n->op && (n->op->flags & HONE_OP_VIEW || hn_is_op(n, "Identity") || hn_is_op(n, "Dropout"));
}

/* Operators with products of their own: what they read is no part of a scale's arithmetic. */
static bool multiplies(const hone_node *n) {
  static const char *const ops[] = {"Einsum", "LSTM", "GRU", "RNN"};
  if (n->op && n->op->product != HONE_PRODUCT_NONE) return true;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return true;
  return n->op && n->op->flags & HONE_OP_CONTROL;
}

/* v is read by a quantising operator: it stays what its maker computed, under every name. A parameter is
 * followed through its arithmetic to what it is computed from. */
static void need(uint8_t *marks, const hn_value *v, uint8_t mark, int depth) {
  if (!v || depth > DEEP || (marks[v->id] & mark) == mark) return;
  marks[v->id] |= mark;
  const hone_node *n = v->producer;
  if (!n || multiplies(n)) return;
  if (renames(n)) need(marks, n->in[0], mark, depth + 1);
  for (uint32_t i = 0; mark & PARAMETER && i < n->n_in; i++) {
    const bool whole = n->in[i] && hone_desc_count(&n->in[i]->desc) != hone_desc_count(&v->desc);
    need(marks, n->in[i], whole ? EXACT : mark, depth + 1); /* what is reduced is data */
  }
}

/* Sums of products of integers, also after integer arithmetic: a bias may stand on either side. */
static bool sums_integers(const uint8_t *marks, const hone_node *n) {
  if (hn_is_op(n, "ConvInteger") || hn_is_op(n, "MatMulInteger")) return true;
  for (uint32_t i = 0; i < n->n_in && (i == 0 || hn_is_op(n, "Add")); i++)
    if (n->in[i] && marks[n->in[i]->id] & SUM)
      return renames(n) || hn_is_op(n, "Add") || hn_is_op(n, "Transpose");
  return false;
}

/* Inputs of quantising operators: bit i of data and parameters. */
static const struct {
  const char *op;
  uint32_t data, parameters;
} quantising[] = {{"QuantizeLinear", 1, 6},  {"DequantizeLinear", 0, 6}, {"DynamicQuantizeLinear", 1, 0},
                  {"ConvInteger", 0, 12},    {"MatMulInteger", 0, 12},   {"QLinearConv", 0, 0xf6},
                  {"QLinearMatMul", 0, 0xf6}};

static void visit(uint8_t *marks, const hone_node *n) {
  for (size_t k = 0; k < sizeof quantising / sizeof *quantising; k++)
    for (uint32_t i = 0; hn_is_op(n, quantising[k].op) && i < n->n_in; i++) {
      if (quantising[k].data >> i & 1) need(marks, n->in[i], EXACT, 0);
      if (quantising[k].parameters >> i & 1) need(marks, n->in[i], EXACT | PARAMETER, 0);
    }
  if (hn_is_op(n, "DynamicQuantizeLinear"))
    for (uint32_t i = 1; i < n->n_out; i++)
      if (n->out[i]) marks[n->out[i]->id] |= EXACT | PARAMETER;
  if (!n->n_out || !n->out[0]) return;
  if (n->out[0]->desc.dtype == HONE_DTYPE_I32 && sums_integers(marks, n)) marks[n->out[0]->id] |= SUM;
  if (hn_is_op(n, "Cast") && n->in[0] && marks[n->in[0]->id] & SUM) marks[n->out[0]->id] |= EXACT;
}

/* Scales times constants are scales. */
static void follow(uint8_t *marks, const hone_node *n) {
  bool any = false;
  if (!n->op || n->n_out != 1 || !n->out[0] ||
      !(renames(n) || n->op->flags & HONE_OP_POINTWISE || hn_is_op(n, "Mul") || hn_is_op(n, "Div") ||
        hn_is_op(n, "Reciprocal")))
    return;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (!v || (v->constant && !v->producer)) continue;
    if (!(marks[v->id] & PARAMETER)) return;
    any = true;
  }
  if (any) marks[n->out[0]->id] |= EXACT | PARAMETER;
}

static bool is_plain(const uint8_t *marks, const hn_value *v) {
  return !v || !v->producer || v->desc.dtype != HONE_DTYPE_F32 || marks[v->id] & PLAIN;
}

static void mark_plain(uint8_t *marks, const hone_node *n) {
  if (!n->op || multiplies(n)) return;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!is_plain(marks, n->in[i])) return;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i]) marks[n->out[i]->id] |= PLAIN;
}

/* v with all it is computed from, as far as no product is: activations have the error of their products
 * anyway, and to keep them would cost what narrow values gain. */
static void keep_place(uint8_t *marks, const hn_value *v, int depth) {
  if (!v || depth > DEEP || marks[v->id] & PLACE || !v->producer || !is_plain(marks, v)) return;
  if (HN_FAULT("places_rounded")) return;
  marks[v->id] |= PLACE | (v->desc.dtype == HONE_DTYPE_F32 ? EXACT : 0);
  for (uint32_t i = 0; i < v->producer->n_in; i++) keep_place(marks, v->producer->in[i], depth + 1);
}

/* Operators whose answer is another one when what they read is a little off. */
static bool wants_places(const hone_node *n) {
  static const char *const ops[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Sin", "Cos",
                                    "Floor", "Ceil", "Round",       "Mod",     "GridSample"};
  if (hn_is_op(n, "Cast")) return n->n_out && n->out[0] && !hone_dtype_is_float(n->out[0]->desc.dtype);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return true;
  return false;
}

/* What is added to scores in front of Softmax hides, or says how far away a key is: it may be large. */
static void keep_masks(uint8_t *marks, const hn_value *scores) {
  for (int depth = 0; scores && scores->producer && depth < DEEP; depth++) {
    const hone_node *n = scores->producer;
    scores = NULL;
    if (!renames(n) && !hn_is_op(n, "Add") && !hn_is_op(n, "Sub") && !hn_is_op(n, "Where")) return;
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (is_plain(marks, n->in[i]))
        keep_place(marks, n->in[i], 0);
      else
        scores = n->in[i];
    }
  }
}

void hn_keep_exact(hn_lowering *l, const hn_value *v) {
  const bool constant = v && v->constant && !v->producer; /* lies as it is */
  if (l->exact && v && !constant) l->exact[v->id] |= EXACT;
}

hone_status hn_lower_exact(hn_lowering *l, hone_error *error) {
  if (l->plan->storage == HONE_DTYPE_F32) return HONE_OK;
  l->exact = HN_NEW_ARRAY(l->temp, uint8_t, l->plan->model->next_value_id);
  if (!l->exact) return hn_fail_memory(error, l->plan->model->next_value_id, "lowering");
  for (const hone_node *n = l->plan->model->graph->first; n; n = n->next) visit(l->exact, n);
  for (const hone_node *n = l->plan->model->graph->first; n; n = n->next) follow(l->exact, n);
  for (const hone_node *n = l->plan->model->graph->first; n; n = n->next) {
    mark_plain(l->exact, n);
    for (uint32_t i = 0; i < n->n_in && wants_places(n); i++) keep_place(l->exact, n->in[i], 0);
    if (hn_is_op(n, "Softmax")) keep_masks(l->exact, n->in[0]);
    if (hn_is_op(n, "Attention") && n->n_in > 3) keep_place(l->exact, n->in[3], 0);
  }
  if (l->plan->backend->asynchronous) return HONE_OK;
  /* A processor's steps read what callers give, and make what they get, where it is. */
  const hn_graph *g = l->plan->model->graph;
  for (size_t i = 0; i < g->inputs.len; i++) hn_keep_exact(l, g->inputs.ptr[i]);
  for (size_t i = 0; i < g->outputs.len; i++) hn_keep_exact(l, g->outputs.ptr[i]);
  return HONE_OK;
}

bool hn_is_exact(const hn_lowering *l, const hn_value *v) {
  return l->exact && v && v->desc.dtype == HONE_DTYPE_F32 && l->exact[v->id] & EXACT;
}

/* Does the unit with its first n_epi absorbed units read or make what stays f32? */
bool hn_touches_exact(const hn_lowering *l, const hn_unit *u, uint32_t n_epi) {
  if (!l->exact) return false;
  for (uint32_t i = 0; i < u->n_in; i++)
    if (hn_is_exact(l, u->in[i])) return true;
  for (uint32_t i = 0; u->kind == HN_UNIT_NODE && i < u->node->n_out; i++)
    if (hn_is_exact(l, u->node->out[i])) return true;
  for (uint32_t k = 0; k < n_epi; k++)
    if (hn_touches_exact(l, u->absorbed[k], u->absorbed[k]->n_absorbed)) return true;
  for (uint32_t k = 0; k < u->n_parts; k++)
    if (hn_touches_exact(l, u->parts[k], u->parts[k]->n_absorbed)) return true;
  return hn_is_exact(l, u->out);
}
