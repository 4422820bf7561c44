/* Pointwise functions from codes to codes:
 *
 *   y = QuantizeLinear(f(DequantizeLinear(x), DequantizeLinear(w), c, ...))
 *
 * for any f of pointwise units that nobody else reads, c constants, of f32 or codes, is one pointwise program
 * that loads codes, computes what DequantizeLinear, f and QuantizeLinear do, and stores codes: one byte a
 * number goes through memory. f may be nothing: codes of other parameters. All parameters are single numbers.
 * What a Concat gathers in f32 is an operand, too: no product would do f on its way out. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "optimize/match/read.h"

#include <string.h>

enum { MOST = 24 };

/* One constant scale and zero point of codes of 8 bits. */
static bool single(const hone_node *n, const hn_value *codes) {
  const hn_value *scale = n->in[1], *zero = hn_in(n, 2);
  const hone_dtype t = codes->desc.dtype;
  return (t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8) && hn_fixed(scale) &&
         scale->desc.dtype == HONE_DTYPE_F32 && hone_desc_count(&scale->desc) == 1 &&
         (!zero || hn_fixed(zero)) && hone_desc_known(&codes->desc);
}

const hone_node *hn_of_any_codes(const hn_value *v) {
  const hone_node *n = v ? v->producer : NULL;
  return hn_is_op(n, "DequantizeLinear") && n->graph == v->graph && n->in[0] &&
                 v->desc.dtype == HONE_DTYPE_F32 && single(n, n->in[0])
             ? n
             : NULL;
}

const hone_node *hn_of_codes(const hn_value *v) {
  const hone_node *n = hn_of_any_codes(v);
  return n && !hn_fixed(n->in[0]) ? n : NULL;
}

bool hn_to_codes(const hone_node *n) {
  return hn_is_op(n, "QuantizeLinear") && n->in[0]->desc.dtype == HONE_DTYPE_F32 && single(n, n->out[0]);
}

void hn_codes_of(const hone_node *n, hone_dtype codes, float *scale, float *zero) {
  const hn_value *z = hn_in(n, 2);
  memcpy(scale, n->in[1]->constant->data, sizeof *scale);
  *zero = !z                       ? 0
          : codes == HONE_DTYPE_I8 ? (float)*(const int8_t *)z->constant->data
                                   : (float)*(const uint8_t *)z->constant->data;
}

typedef struct found {
  hn_unit *root, *part[MOST];
  uint32_t n, codes, real; /* parts; operands that are codes, and that are f32 */
} found;

/* Takes v as codes, a constant or a function of such; false where it is none of them. */
static bool take(hn_lowering *l, found *f, const hn_value *v) {
  float number;
  if (!v) return false;
  if (hn_of_codes(v)) {
    f->codes++;
    return true;
  }
  if (hn_scalar_constant(v, &number) || (hn_fixed(v) && v->desc.dtype == HONE_DTYPE_F32) ||
      hn_of_any_codes(v))
    return true;
  hn_unit *u = l->by_value[v->id];
  if (u && hn_is_op(v->producer, "Concat") && v->producer->graph == v->graph &&
      v->desc.dtype == HONE_DTYPE_F32 && hone_desc_known(&v->desc)) {
    f->real++;
    return true;
  }
  if (!u || u->into || u->kind != HN_UNIT_POINTWISE || u->n_absorbed || v->desc.dtype != HONE_DTYPE_F32)
    return false;
  for (uint32_t i = 0; i < f->n; i++)
    if (f->part[i] == u) return true;
  if (f->n == MOST || v->is_output || !hone_desc_known(&v->desc)) return false;
  f->part[f->n++] = u;
  for (uint32_t i = 0; i < u->n_in; i++)
    if (!take(l, f, u->in[i])) return false;
  return true;
}

/* Whether nobody else reads what the part makes. */
static bool inner(const hn_lowering *l, const found *f, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *r = v->users.ptr[i].node;
    const hn_unit *by = r->graph == v->graph && r->n_out && r->out[0] ? l->by_value[r->out[0]->id] : NULL;
    bool within = by == f->root;
    for (uint32_t k = 0; k < f->n && !within; k++) within = by == f->part[k];
    if (!within) return false;
  }
  return true;
}

static bool find(hn_lowering *l, hn_unit *u, found *f) {
  const hone_node *q = u->node;
  *f = (found){.root = u};
  if (u->into || u->kind != HN_UNIT_NODE || u->n_nodes != 1 || strcmp(u->anchor, "QuantizeLinear") != 0 ||
      !hn_to_codes(q))
    return false;
  if (!take(l, f, q->in[0]) || (!f->codes && !(f->real && f->n))) return false;
  for (uint32_t i = 0; i < f->n; i++) /* the program has the dimensions of its result */
    if (!inner(l, f, f->part[i]->out) || !hn_broadcasts_into(&f->part[i]->out->desc, &q->out[0]->desc))
      return false;
  return true;
}

static bool make_unit(hn_lowering *l, const found *f, bool *taken) {
  const hn_unit *root = f->root;
  hn_unit *u = HN_NEW(l->temp, hn_unit), **parts = HN_NEW_ARRAY(l->temp, hn_unit *, f->n + 1);
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, 1);
  if (!u || !parts || !in) return false;
  memcpy(parts, f->part, f->n * sizeof *parts);
  in[0] = root->node->in[0];
  *u = *root;
  u->kind = HN_UNIT_CODES;
  u->anchor = "QuantizeLinear";
  u->in = in;
  u->n_in = 1;
  u->absorbed = parts;
  u->n_absorbed = f->n;
  *taken = hn_lower_takes(l, u);
  return !*taken || (*f->root = *u, true);
}

hone_status hn_lower_codes_pointwise(hn_lowering *l, bool *integer, bool *any, hone_error *error) {
  for (size_t i = 0; i < l->units.len; i++) {
    found f;
    bool taken = false;
    if (!find(l, l->units.ptr[i], &f)) continue;
    if (!make_unit(l, &f, &taken)) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
    if (!taken) continue;
    integer[f.root->out->id] = *any = true;
    for (uint32_t k = 0; k < f.n; k++) {
      f.part[k]->into = f.root;
      for (uint32_t j = 0; j < f.part[k]->n_nodes; j++) {
        const hn_value *v = f.part[k]->nodes[j]->out[0];
        l->by_value[v->id] = f.root;
        integer[v->id] = true;
      }
    }
  }
  return HONE_OK;
}
