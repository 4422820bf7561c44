/* A function of one operand (LeakyRelu, Sigmoid...) between DequantizeLinear and QuantizeLinear is a table of
 * 256 codes: the unit's anchor is CodeTable, with the inputs x and table. A QLinearConv that only such a
 * table reads becomes one unit with it, a QLinearConvTable, where a tactic takes that: QLinearConv's inputs
 * and the table behind them. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/eval.h"
#include "optimize/step/qlinear.h"

#include <string.h>

enum { CODES = 256 };

typedef struct function {
  const hone_node *x, *node, *quantise;
} function;

static bool eight_bits(const hn_value *v) {
  return v->desc.dtype == HONE_DTYPE_U8 || v->desc.dtype == HONE_DTYPE_I8;
}

/* The node's other operands (Clip's bounds) are constants. */
static bool alone(const hone_node *n) {
  for (uint32_t i = 1; i < n->n_in; i++)
    if (n->in[i] && !hn_fixed(n->in[i])) return false;
  return n->n_out == 1 && n->out[0] && n->op && n->op->reference;
}

static bool find(const hn_unit *u, function *f) {
  if (u->into || u->kind != HN_UNIT_POINTWISE || u->n_in != 1 || u->n_nodes != 1 || !alone(u->node))
    return false;
  *f = (function){hn_dequantised(u->in[0]), u->node, hn_only_reader(u->out)};
  const hone_node *x = f->x, *q = f->quantise;
  if (!x || u->node->in[0] != u->in[0] || hn_fixed(x->in[0]) || !hn_is_op(q, "QuantizeLinear") ||
      q->in[0] != u->out)
    return false;
  return hn_fixed(q->in[1]) && q->in[1]->desc.dtype == HONE_DTYPE_F32 &&
         hone_desc_count(&q->in[1]->desc) == 1 && hone_desc_count(&x->in[1]->desc) == 1 &&
         (!hn_quantise_zero(q) || hn_fixed(hn_quantise_zero(q))) && eight_bits(x->in[0]) &&
         eight_bits(q->out[0]);
}

/* Evaluates a node whose operand 0 is *t, which the result replaces. */
static hone_status step_on(hn_lowering *l, const hone_node *n, hone_tensor *t, hone_error *error) {
  enum { MOST = 8 };
  const hone_tensor *in[MOST] = {t};
  hone_tensor made = {0}, *out[] = {&made};
  hn_budget budget = {0};
  for (uint32_t i = 1; i < n->n_in && i < MOST; i++) in[i] = n->in[i] ? n->in[i]->constant : NULL;
  const hone_status status = hn_eval_node(n, in, out, l->temp, &budget, error);
  hn_free(t->data);
  *t = made;
  return status;
}

/* What becomes of every code, by the operators' references. NULL with HONE_OK: they do not say. */
static hone_status make_table(hn_lowering *l, const function *f, hn_value **table, hone_error *error) {
  const int64_t n = CODES;
  hone_tensor t = {.desc = hone_desc(f->x->in[0]->desc.dtype, 1, &n), .data = hn_malloc(CODES)};
  *table = NULL;
  if (!t.data) return hn_fail_memory(error, CODES, "a table of codes");
  for (int i = 0; i < CODES; i++) ((unsigned char *)t.data)[i] = (unsigned char)i;
  hone_status status = step_on(l, f->x, &t, error);
  if (status == HONE_OK) status = step_on(l, f->node, &t, error);
  if (status == HONE_OK) status = step_on(l, f->quantise, &t, error);
  if (status != HONE_OK || hone_desc_count(&t.desc) != CODES ||
      t.desc.dtype != f->quantise->out[0]->desc.dtype) {
    hn_free(t.data);
    return status;
  }
  *table = hn_plan_constant(l, f->node->out[0], &t);
  return *table ? HONE_OK : hn_fail_memory(error, CODES, "a table of codes");
}

/* The unit of a convolution whose codes nobody but f reads, or NULL. */
static hn_unit *convolution_of(const hn_lowering *l, const function *f) {
  const hn_value *codes = f->x->in[0];
  hn_unit *u = l->by_value[codes->id];
  if (!u || u->into || strcmp(u->anchor, "QLinearConv") != 0 || u->n_in != HN_QLINEAR_INPUTS) return NULL;
  if (hn_only_reader(codes) != f->x || hn_only_reader(f->x->out[0]) != f->node) return NULL;
  return u->in[HN_QLINEAR_Y_ZERO] ? u : NULL; /* which says what type its codes have */
}

/* Puts *u in the place of f's QuantizeLinear. */
static void settle(hn_lowering *l, const function *f, const hn_unit *u, hn_unit *conv) {
  hn_unit *root = l->by_value[f->quantise->out[0]->id];
  for (uint32_t i = 0; conv && i < conv->n_nodes; i++) l->by_value[conv->nodes[i]->out[0]->id] = root;
  if (conv) conv->into = root; /* for the sweep */
  l->by_value[f->node->out[0]->id]->into = root;
  l->by_value[f->node->out[0]->id] = root;
  *root = *u;
}

/* conv: a convolution that the unit is to begin with, or NULL. */
static bool make_unit(hn_lowering *l, const function *f, hn_value *table, hn_unit *conv, hn_unit *u) {
  const uint32_t before = conv ? conv->n_nodes : 0, n_in = conv ? HN_QLINEAR_TABLE + 1 : 2;
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, n_in);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, before + 2);
  if (!in || !nodes) return false;
  if (conv) {
    memcpy(in, conv->in, HN_QLINEAR_INPUTS * sizeof *in);
    memcpy(nodes, conv->nodes, before * sizeof *nodes);
  } else {
    in[0] = f->x->in[0];
  }
  in[n_in - 1] = table;
  nodes[before] = f->node, nodes[before + 1] = f->quantise;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = conv ? "QLinearConvTable" : "CodeTable",
                 .node = conv ? conv->node : f->node,
                 .n_in = n_in,
                 .in = in,
                 .out = f->quantise->out[0],
                 .n_nodes = before + 2,
                 .nodes = nodes,
                 .order = l->by_value[f->quantise->out[0]->id]->order};
  return true;
}

hone_status hn_lower_tables(hn_lowering *l, bool *integer, bool *any, hone_error *error) {
  for (size_t i = 0; i < l->units.len; i++) {
    function f;
    hn_value *table;
    hn_unit u;
    if (!find(l->units.ptr[i], &f)) continue;
    hone_status status = make_table(l, &f, &table, error);
    if (status != HONE_OK) return status;
    if (!table) continue;
    hn_unit *conv = convolution_of(l, &f);
    bool taken = false;
    for (int k = conv ? 0 : 1; k < 2 && !taken; k++) {
      if (!make_unit(l, &f, table, k ? NULL : conv, &u)) return hn_fail_memory(error, sizeof u, "lowering");
      if (!(taken = hn_lower_takes(l, &u))) continue;
      settle(l, &f, &u, k ? NULL : conv);
      *any = integer[f.node->out[0]->id] = true;
    }
    if (!taken) l->slot_of[table->id] = NULL; /* the function makes its value after all */
  }
  return HONE_OK;
}
