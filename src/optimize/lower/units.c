/* From nodes to units. */
#include "optimize/lower/lowering.h"

#include "base/error.h"

#include <string.h>

bool hn_scalar_constant(const hn_value *v, float *out) {
  if (!v || !v->constant || v->constant->desc.dtype != HONE_DTYPE_F32 ||
      hone_desc_count(&v->constant->desc) != 1)
    return false;
  *out = *(const float *)v->constant->data;
  return true;
}

/* What the operator says of itself, with the node's immediates. */
static bool read_function(const hone_function *f, const hone_node *n, hone_pw_instr *instr) {
  enum { MOST = 8 };
  const hone_tensor_desc *in[MOST];
  const hone_tensor *value[MOST];
  instr->op = (uint8_t)f->op;
  instr->alpha = f->alpha ? hone_node_float(n, f->alpha, f->alpha_otherwise) : f->alpha_otherwise;
  instr->beta = f->beta ? hone_node_float(n, f->beta, f->beta_otherwise) : f->beta_otherwise;
  if (!f->read) return true;
  if (n->n_in > MOST) return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = n->in[i] ? &n->in[i]->desc : NULL;
    value[i] = n->in[i] ? n->in[i]->constant : NULL;
  }
  hone_tensor_desc *out[] = {&n->out[0]->desc};
  return f->read(&(hone_infer){n, n->n_in, 1, in, value, out}, instr);
}

bool hn_pointwise_of(const hone_node *n, hn_unit *u) {
  if (n->n_out != 1 || !n->out[0] || !hone_desc_known(&n->out[0]->desc)) return false;
  if (!hn_pointwise_function(n, u)) return false;
  for (uint32_t i = 0; i < u->n_in; i++)
    if (!hone_desc_known(&n->in[i]->desc)) return false;
  return true;
}

bool hn_pointwise_function(const hone_node *n, hn_unit *u) {
  const hone_function *f = n->op ? n->op->function : NULL;
  if (!f || n->n_out != 1 || !n->out[0]) return false;
  if (hn_node_attr(n, "axis")) return false; /* before opset 7 operands may lie elsewhere than at the end */
  const hone_tensor_desc *od = &n->out[0]->desc;
  if (od->dtype != HONE_DTYPE_F32 && od->dtype != HONE_DTYPE_BOOL) return false;
  hone_pw_instr instr = {0};
  if (!read_function(f, n, &instr)) return false;
  u->op = instr.op;
  u->alpha = instr.alpha;
  u->beta = instr.beta;
  const uint32_t operands = f->operands ? f->operands : n->n_in;
  u->chain = !f->operands && operands != 2; /* a Sum of two is an Add */
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

/* Bytes that a caller gives, as floats: programs load them as such, so that their conversion rides along with
 * the one function that reads it. Between its limits a number of theirs stays what it is. */
static bool from_bytes(const hone_node *n, hn_unit *u) {
  if (!hn_is_op(n, "Cast") || n->n_in != 1 || n->n_out != 1 || !n->in[0] || !n->out[0]) return false;
  const hn_value *x = n->in[0], *y = n->out[0];
  const bool is_signed = x->desc.dtype == HONE_DTYPE_I8;
  if ((x->desc.dtype != HONE_DTYPE_U8 && !is_signed) || y->desc.dtype != HONE_DTYPE_F32) return false;
  if (!x->is_input || x->constant || !hone_desc_known(&y->desc) || !hn_value_single_use(y)) return false;
  hn_unit reader;
  const hone_node *next = y->users.ptr[0].node;
  if (next->graph != n->graph || !hn_pointwise_of(next, &reader) ||
      !hone_desc_same_dims(&next->out[0]->desc, &y->desc))
    return false;
  u->op = HONE_PW_CLIP;
  u->alpha = is_signed ? -128 : 0;
  u->beta = is_signed ? 127 : 255;
  return true;
}

static bool is_view(const hone_node *n) {
  return n->op && (n->op->flags & HONE_OP_VIEW) && n->n_out >= 1 && n->out[0] && n->n_in >= 1 && n->in[0] &&
         (n->n_out == 1 || !n->out[1]) && hone_dtype_is_tensor(n->in[0]->desc.dtype);
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
    else if (hn_pointwise_of(n, u) || from_bytes(n, u))
      u->kind = HN_UNIT_POINTWISE;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) l->by_value[n->out[i]->id] = u;
  }
  return HONE_OK;
}
