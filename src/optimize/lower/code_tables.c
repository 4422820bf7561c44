/* Any pointwise function of one tensor of codes (LeakyRelu, x * Sigmoid(x)...) between DequantizeLinear and
 * QuantizeLinear is a table of 256 codes: the unit's anchor is CodeTable, with the inputs x and table. Tables
 * of the same codes on the way, as of the Sigmoid in x * Sigmoid(x) that is quantised by itself, are part of
 * it. A QLinearConv or QLinearMatMul that only such a table reads becomes one unit with it, a
 * QLinearConvTable or QLinearMatMulTable, where a tactic takes that: its inputs and the table behind them. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/eval.h"
#include "optimize/step/qlinear.h"

#include <string.h>

enum { CODES = 256 };

enum { MOST_PARTS = 24, MOST_VALUES = 64 };

/* A function of one tensor of codes, and what becomes of every code in each value of it. */
typedef struct function {
  hn_unit *root;             /* of the QuantizeLinear */
  hn_unit *part[MOST_PARTS]; /* what it stands for besides: functions of floats, tables of codes */
  uint32_t n, n_nodes;
  hn_value *codes; /* of which it is a function */
  struct {
    const hn_value *v;
    hone_tensor t;
  } value[MOST_VALUES];
  uint32_t n_values;
} function;

static bool eight_bits(const hn_value *v) {
  return v->desc.dtype == HONE_DTYPE_U8 || v->desc.dtype == HONE_DTYPE_I8;
}

static bool part_of(const function *f, const hn_unit *u) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->part[i] == u) return true;
  return u == f->root;
}

static bool add_part(function *f, hn_unit *u) {
  if (part_of(f, u)) return true;
  if (f->n == MOST_PARTS) return false;
  f->part[f->n++] = u;
  f->n_nodes += u->n_nodes;
  return true;
}

static bool one_number(const hn_value *v) {
  return (hn_fixed(v) || hn_of_fixed_codes(v)) && hone_desc_count(&v->desc) == 1;
}

static bool is_table(const hn_unit *u) {
  return u && !u->into && u->kind == HN_UNIT_NODE && !strcmp(u->anchor, "CodeTable");
}

/* What lies behind the codes: those of the function of which they are a table already. */
static hn_value *behind(const hn_lowering *l, hn_value *codes) {
  const hn_unit *u = l->by_value[codes->id];
  return is_table(u) ? u->in[0] : NULL;
}

/* v's codes are those of the function, or a table of them: the two ways meet at the codes that come first. */
static bool join(const hn_lowering *l, function *f, hn_value *codes) {
  if (!f->codes) f->codes = codes;
  for (hn_value *a = f->codes; a; a = behind(l, a))
    for (hn_value *b = codes; b; b = behind(l, b))
      if (a == b) return f->codes = a, true;
  return false;
}

/* Takes v and what it is computed from; false where that is not one number for each code. */
static bool take(const hn_lowering *l, function *f, const hn_value *v) {
  if (!v || one_number(v)) return true;
  const hone_node *dequantise = hn_of_codes(v);
  if (dequantise) return join(l, f, dequantise->in[0]);
  hn_unit *u = l->by_value[v->id];
  if (!u || u->into || u->kind != HN_UNIT_POINTWISE || u->n_absorbed || v->is_output ||
      v->desc.dtype != HONE_DTYPE_F32)
    return false;
  if (part_of(f, u)) return true;
  if (!add_part(f, u)) return false;
  for (uint32_t i = 0; i < u->n_nodes; i++) {
    const hone_node *n = u->nodes[i];
    if (n->n_out != 1 || !n->op || !n->op->reference) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
      bool inner = false;
      for (uint32_t j = 0; j < u->n_nodes; j++) inner |= n->in[k] && n->in[k] == u->nodes[j]->out[0];
      if (!inner && !take(l, f, n->in[k])) return false;
    }
  }
  return true;
}

/* Whether only the function reads v. */
static bool read_inside(const hn_lowering *l, const function *f, const hn_value *v) {
  if (v->is_output) return false;
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *r = v->users.ptr[i].node;
    if (r->graph != v->graph || !r->n_out || !r->out[0] || !part_of(f, l->by_value[r->out[0]->id]))
      return false;
  }
  return true;
}

/* Whether only the function reads the codes, through DequantizeLinear. */
static bool codes_read_inside(const hn_lowering *l, const function *f, const hn_value *codes) {
  if (codes->is_output) return false;
  for (size_t i = 0; i < codes->users.len; i++) {
    const hone_node *r = codes->users.ptr[i].node;
    if (r->graph != codes->graph || !hn_is_op(r, "DequantizeLinear") || r->in[0] != codes ||
        !read_inside(l, f, r->out[0]))
      return false;
  }
  return true;
}

/* Tables that only the function reads become part of it: of the codes it reads, or of codes that such tables
 * made; and the one that makes its own codes. */
static bool take_tables(const hn_lowering *l, function *f) {
  for (hn_value *b = behind(l, f->codes); b && codes_read_inside(l, f, f->codes); b = behind(l, b)) {
    if (!add_part(f, l->by_value[f->codes->id])) return false;
    f->codes = b;
  }
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < l->units.len; i++) {
      hn_unit *u = l->units.ptr[i];
      if (!is_table(u) || u->out == f->codes || part_of(f, u) || !u->out->users.len) continue;
      const hone_node *first = u->out->users.ptr[0].node;
      if (!hn_is_op(first, "DequantizeLinear") || !first->out[0]->users.len) continue;
      if (!codes_read_inside(l, f, u->out)) continue;
      if (!add_part(f, u)) return false;
      more = true;
    }
  }
  return true;
}

static bool find(const hn_lowering *l, hn_unit *u, function *f) {
  const hone_node *q = u->node;
  if (u->into || u->kind != HN_UNIT_NODE || u->n_nodes != 1 || strcmp(u->anchor, "QuantizeLinear") != 0 ||
      !hn_is_op(q, "QuantizeLinear") || !hn_fixed(q->in[1]) || !one_number(q->in[1]) ||
      q->in[1]->desc.dtype != HONE_DTYPE_F32 || (hn_quantise_zero(q) && !hn_fixed(hn_quantise_zero(q))) ||
      !eight_bits(q->out[0]))
    return false;
  memset(f, 0, sizeof *f);
  f->root = u;
  if (!take(l, f, q->in[0]) || !f->codes) return false;
  if (!read_inside(l, f, q->in[0])) return false; /* its place becomes the table's */
  if (!hone_desc_same_dims(&f->codes->desc, &q->out[0]->desc)) return false;
  for (uint32_t i = 0; i < f->n; i++)
    if (!read_inside(l, f, f->part[i]->out)) return false;
  return true;
}

static hone_status value_of(const hn_lowering *l, function *f, const hn_value *v, const hone_tensor **out,
                            hone_error *error);

/* Evaluates v's node: by the operators' references. *t has no data with HONE_OK: they do not say. */
static hone_status evaluate(const hn_lowering *l, function *f, const hn_value *v, hone_tensor *t,
                            hone_error *error) {
  enum { MOST = 8 };
  const hone_node *n = v->producer;
  const hone_tensor *in[MOST] = {0};
  hone_tensor *out[] = {t}, number[MOST];
  hn_budget budget = {0};
  if (!n || n->n_in > MOST) return HONE_OK;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i]) continue;
    const hone_status status = value_of(l, f, n->in[i], &in[i], error);
    if (status != HONE_OK || !in[i]) return status;
    if (!one_number(n->in[i])) continue;
    /* Of whatever rank beside a tensor: codes are a vector, and PRelu's slope may have no more dimensions. */
    number[i] = *in[i];
    number[i].desc = hone_desc(in[i]->desc.dtype, 0, NULL);
    in[i] = &number[i];
  }
  return hn_eval_node(n, in, out, l->temp, &budget, error);
}

/* The codes themselves, or what a table makes of them. */
static hone_status codes_of(const hn_lowering *l, function *f, const hn_value *v, hone_tensor *t,
                            hone_error *error) {
  const int64_t n = CODES;
  const hn_unit *u = l->by_value[v->id];
  const hone_tensor *from = NULL;
  if (v != f->codes) {
    const hone_status status = value_of(l, f, u->in[0], &from, error);
    if (status != HONE_OK || !from) return status;
  }
  *t = (hone_tensor){.desc = hone_desc(v->desc.dtype, 1, &n), .data = hn_malloc(CODES)};
  if (!t->data) return hn_fail_memory(error, CODES, "a table of codes");
  for (int i = 0; i < CODES; i++)
    ((uint8_t *)t->data)[i] =
        from ? ((const uint8_t *)u->in[1]->constant->data)[((const uint8_t *)from->data)[i]] : (uint8_t)i;
  return HONE_OK;
}

static hone_status value_of(const hn_lowering *l, function *f, const hn_value *v, const hone_tensor **out,
                            hone_error *error) {
  hone_tensor made = {0};
  *out = v->constant;
  for (uint32_t i = 0; i < f->n_values && !*out; i++)
    if (f->value[i].v == v) *out = &f->value[i].t;
  if (*out) return HONE_OK;
  const bool codes = v == f->codes || (v->desc.dtype != HONE_DTYPE_F32 && is_table(l->by_value[v->id]));
  const hone_status status = codes ? codes_of(l, f, v, &made, error) : evaluate(l, f, v, &made, error);
  if (status != HONE_OK || !made.data || f->n_values == MOST_VALUES) {
    hn_free(made.data);
    return status;
  }
  f->value[f->n_values].v = v;
  f->value[f->n_values].t = made;
  *out = &f->value[f->n_values++].t;
  return HONE_OK;
}

/* What becomes of every code. NULL with HONE_OK: the references do not say. */
static hone_status make_table(hn_lowering *l, function *f, hn_value **table, hone_error *error) {
  const hn_value *y = f->root->out;
  const hone_tensor *found = NULL;
  *table = NULL;
  hone_status status = value_of(l, f, y, &found, error);
  if (status == HONE_OK && found && hone_desc_count(&found->desc) == CODES &&
      found->desc.dtype == y->desc.dtype) {
    const int64_t n = CODES;
    hone_tensor t = {.desc = hone_desc(y->desc.dtype, 1, &n), .data = hn_malloc(CODES)};
    if (t.data) memcpy(t.data, found->data, CODES);
    *table = t.data ? hn_plan_constant(l, y->producer->in[0], &t) : NULL;
    if (!*table) status = hn_fail_memory(error, CODES, "a table of codes");
  }
  for (uint32_t i = 0; i < f->n_values; i++) hn_free(f->value[i].t.data);
  f->n_values = 0;
  return status;
}

/* The unit of a convolution or product whose codes nobody but f reads, or NULL. */
static hn_unit *product_of(const hn_lowering *l, const function *f) {
  hn_unit *u = l->by_value[f->codes->id];
  if (!u || u->into || !hn_codes_joined(u, HN_JOINED_TABLE) || u->n_in != HN_QLINEAR_INPUTS) return NULL;
  if (!codes_read_inside(l, f, f->codes)) return NULL;
  return u->in[HN_QLINEAR_Y_ZERO] ? u : NULL; /* which says what type its codes have */
}

/* Puts *u in the place of f's QuantizeLinear. */
static void settle(hn_lowering *l, const function *f, const hn_unit *u, hn_unit *conv, bool *integer) {
  for (uint32_t k = 0; k <= f->n; k++) {
    hn_unit *p = k < f->n ? f->part[k] : conv;
    for (uint32_t i = 0; p && i < p->n_nodes; i++) {
      const hn_value *v = p->nodes[i]->out[0];
      l->by_value[v->id] = f->root;
      integer[v->id] = true;
    }
    if (p) p->into = f->root; /* for the sweep */
  }
  integer[f->root->out->id] = true;
  *f->root = *u;
}

/* conv: a convolution or product that the unit is to begin with, or NULL. */
static bool make_unit(hn_lowering *l, const function *f, hn_value *table, hn_unit *conv, hn_unit *u) {
  const hn_unit *root = f->root;
  const uint32_t n_in = conv ? HN_QLINEAR_TABLE + 1 : 2;
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, n_in);
  const hone_node **nodes =
      HN_NEW_ARRAY(l->temp, const hone_node *, (conv ? conv->n_nodes : 0) + f->n_nodes + 1);
  uint32_t n = 0;
  if (!in || !nodes) return false;
  if (conv) memcpy(in, conv->in, HN_QLINEAR_INPUTS * sizeof *in);
  if (!conv) in[0] = f->codes;
  in[n_in - 1] = table;
  for (uint32_t i = 0; conv && i < conv->n_nodes; i++) nodes[n++] = conv->nodes[i];
  for (uint32_t k = f->n; k-- > 0;) /* found from the end */
    for (uint32_t i = 0; i < f->part[k]->n_nodes; i++) nodes[n++] = f->part[k]->nodes[i];
  nodes[n++] = root->node;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = conv ? hn_codes_joined(conv, HN_JOINED_TABLE) : "CodeTable",
                 .node = conv ? conv->node : root->node->in[0]->producer,
                 .n_in = n_in,
                 .in = in,
                 .out = root->out,
                 .n_nodes = n,
                 .nodes = nodes,
                 .order = root->order};
  return true;
}

hone_status hn_lower_tables(hn_lowering *l, bool *integer, bool *any, hone_error *error) {
  function *f = HN_NEW(l->temp, function);
  if (!f) return hn_fail_memory(error, sizeof *f, "lowering");
  for (size_t i = 0; i < l->units.len; i++) {
    hn_value *table;
    hn_unit u;
    if (!find(l, l->units.ptr[i], f)) continue;
    if (!take_tables(l, f)) continue;
    hone_status status = make_table(l, f, &table, error);
    if (status != HONE_OK) return status;
    if (!table) continue;
    hn_unit *conv = product_of(l, f);
    bool taken = false;
    for (int k = conv ? 0 : 1; k < 2 && !taken; k++) {
      if (!make_unit(l, f, table, k ? NULL : conv, &u)) return hn_fail_memory(error, sizeof u, "lowering");
      if (!(taken = hn_lower_takes(l, &u))) continue;
      settle(l, f, &u, k ? NULL : conv, integer);
      *any = true;
    }
    if (!taken) l->slot_of[table->id] = NULL; /* the function makes its value after all */
  }
  return HONE_OK;
}
