/* What the codes of each value mean: scales and zero points, as the graph says them when the passes are done.
 *
 * Operators say it of what they make and of what they read (hone_codes_port, hone_float_form); what only
 * moves elements passes it on, first towards its operands, then from them. Whoever makes codes is believed
 * before who reads them; readers that differ are not believed at all. The numbers are copied into the plan:
 * a file's may lie at any alignment, and packing lets go of constants. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ops/common/op.h"

#include <string.h>

typedef enum said { NOBODY, MAKER, OTHERS, AT_ODDS } said;

typedef struct walk {
  hn_lowering *l;
  hone_quant *of;   /* by value id */
  uint8_t *by;      /* said */
  bool *says_codes; /* by value id */
} walk;

/* ------------------------------------------------------------------ numbers */

/* The numbers of a constant; data NULL: it is none. False when memory is short. */
static bool numbers(walk *w, const hn_value *v, hone_tensor *out) {
  *out = (hone_tensor){0};
  if (!hn_fixed(v) || v->deferred || !v->constant->data) return true;
  *out = *v->constant;
  if (hn_is_aligned(out)) return true;
  out->data = hn_arena_memdup(w->l->temp, out->data, (size_t)hone_desc_bytes(&out->desc));
  return out->data != NULL;
}

static int32_t axis_of(const hone_node *n, const hn_value *v, hone_codes_axis axis) {
  int64_t at = -1;
  switch (axis) {
  case HONE_CODES_AXIS_NONE: return -1;
  case HONE_CODES_AXIS_FIRST: return 0;
  case HONE_CODES_AXIS_ROW: return v->desc.rank - 2;
  case HONE_CODES_AXIS_COLUMN: return hone_node_int(n, "transB", 0) ? 0 : v->desc.rank - 1;
  case HONE_CODES_AXIS_ATTRIBUTE:
    at = hone_node_int(n, "axis", 1);
    if (at < 0) at += v->desc.rank;
  }
  return at < v->desc.rank ? (int32_t)at : -1;
}

static const hn_value *input(const hone_node *n, uint32_t i) { return i < n->n_in ? n->in[i] : NULL; }

/* Scales and zero points; false when memory is short. q->count 0: they are not known, or not of a kind that
 * hone_quant expresses (a scale for every block). */
static bool read(walk *w, const hone_node *n, const hn_value *v, hone_codes_port port, hone_quant *q) {
  hn_arena *a = &w->l->plan->arena;
  const hn_value *from = input(n, port.scale), *zero_from = input(n, port.zero);
  hone_tensor scale, zero;
  *q = (hone_quant){.axis = -1};
  if (!numbers(w, from, &scale) || !numbers(w, zero_from, &zero)) return false;
  if (!scale.data || !hone_dtype_is_float(scale.desc.dtype) || (zero_from && !zero.data)) return true;
  const int64_t count = hone_desc_count(&scale.desc), zeros = zero.data ? hone_desc_count(&zero.desc) : 1;
  const int32_t axis = count == 1 ? -1 : axis_of(n, v, (hone_codes_axis)port.axis);
  if (count < 1 || (zeros != count && zeros != 1)) return true;
  if (count > 1 &&
      (axis < 0 || scale.desc.rank != 1 || (v->desc.dim[axis] >= 0 && v->desc.dim[axis] != count)))
    return true;
  float *s = HN_NEW_ARRAY(a, float, count);
  int32_t *z = HN_NEW_ARRAY(a, int32_t, count);
  if (!s || !z) return false;
  bool any = false;
  for (int64_t i = 0; i < count; i++) {
    s[i] = (float)hn_get_f64(&scale, i);
    if (zero.data) z[i] = (int32_t)hn_get_f64(&zero, zeros == 1 ? 0 : i);
    any = any || z[i];
  }
  *q = (hone_quant){.count = (uint32_t)count, .axis = axis, .scale = s, .zero_point = any ? z : NULL};
  w->says_codes[from->id] = true;
  if (zero_from) w->says_codes[zero_from->id] = true;
  return true;
}

/* ------------------------------------------------------------------ what operators say */

static bool are_codes(const hn_value *v) {
  if (!v || !hone_dtype_is_tensor(v->desc.dtype) || v->desc.rank < 0) return false;
  const hone_dtype t = v->desc.dtype;
  return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 || t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16 ||
         t == HONE_DTYPE_I32;
}

static bool main_graph(const walk *w, const hn_value *v) { return v->graph == w->l->plan->model->graph; }

static void believe(walk *w, const hn_value *v, const hone_quant *q, said by) {
  const uint8_t have = w->by[v->id];
  if (have == NOBODY || (by == MAKER && have != MAKER)) {
    w->of[v->id] = *q;
    w->by[v->id] = (uint8_t)by;
  } else if (have == OTHERS && !hone_quant_same(&w->of[v->id], q)) {
    w->of[v->id] = (hone_quant){0};
    w->by[v->id] = AT_ODDS;
  }
}

static bool port_says(walk *w, const hone_node *n, hone_codes_port port) {
  const bool result = port.tensor == HONE_CODES_RESULT;
  const hn_value *v = result ? n->n_out ? n->out[0] : NULL : input(n, port.tensor);
  hone_quant q;
  if (!are_codes(v) || !main_graph(w, v)) return true;
  if (!read(w, n, v, port, &q)) return false;
  if (q.count) believe(w, v, &q, result ? MAKER : OTHERS);
  return true;
}

static bool form_says(walk *w, const hone_node *n, const hone_float_form *f) {
  const uint32_t k = f->operands ? f->operands : (n->n_in - f->first + 1) / 3;
  bool good = port_says(w, n, (hone_codes_port){HONE_CODES_RESULT, f->y, f->y + 1, HONE_CODES_AXIS_NONE});
  for (uint32_t i = 0; i < k && good; i++) {
    const uint32_t at = f->first + 3 * i;
    if (at > UINT8_MAX - 3) break; /* a port counts in bytes */
    good = port_says(
        w, n, (hone_codes_port){(uint8_t)at, (uint8_t)(at + 1), (uint8_t)(at + 2), HONE_CODES_AXIS_NONE});
  }
  return good;
}

static bool says(walk *w, const hone_node *n) {
  bool good = true;
  if (!n->op) return true;
  if (n->op->float_form) good = form_says(w, n, n->op->float_form);
  for (const hone_codes_port *p = n->op->ports; p && p->scale && good; p++) good = port_says(w, n, *p);
  return good;
}

/* ------------------------------------------------------------------ what is passed on */

/* Averages of codes are codes of averages: what pools and resizes without leaving its codes moves, too. */
static bool moves(const hone_node *n) {
  return n->op && n->n_in && n->n_out &&
         ((n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW) && !(n->op->flags & HONE_OP_SHAPE_ONLY)) ||
          n->op->codes == HONE_CODES_SAME || hn_is_op(n, "Resize"));
}

/* Elements of n's results: the operand is one of those that are moved. */
static bool is_moved(const hone_node *n, const hn_value *v) {
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && v && n->out[i]->desc.dtype == v->desc.dtype) return are_codes(v);
  return false;
}

/* One number, such as what a Pad pads with: of no quantisation of its own. */
static bool single(const hn_value *v) { return hn_fixed(v) && hone_desc_count(&v->desc) == 1; }

/* q of a value behind (or, back, before) n; count 0: it does not pass. */
static hone_quant passed(const hone_node *n, const hn_value *from, const hn_value *to, hone_quant q,
                         bool back) {
  size_t rank;
  const int64_t *perm = hn_is_op(n, "Transpose") ? hone_node_ints(n, "perm", &rank) : NULL;
  if (q.count < 2 || (n->op->flags & HONE_OP_VIEW && hone_desc_same_dims(&from->desc, &to->desc))) return q;
  if (hn_is_op(n, "Transpose") && !perm) {
    q.axis = from->desc.rank - 1 - q.axis;
    return q;
  }
  for (size_t i = 0; perm && i < rank; i++)
    if (back ? (int64_t)i == q.axis : perm[i] == q.axis) {
      q.axis = (int32_t)(back ? perm[i] : (int64_t)i);
      return q;
    }
  return (hone_quant){0};
}

static void pass_back(walk *w, const hone_node *n) {
  const hn_value *y = NULL;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i] || !w->of[n->out[i]->id].count) continue;
    if (y && !hone_quant_same(&w->of[y->id], &w->of[n->out[i]->id])) return;
    y = n->out[i];
  }
  if (!y) return;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *x = n->in[i];
    if (!is_moved(n, x) || !main_graph(w, x) || (i && single(x))) continue;
    const hone_quant q = passed(n, y, x, w->of[y->id], true);
    if (q.count) believe(w, x, &q, OTHERS);
  }
}

static void pass_on(walk *w, const hone_node *n) {
  const hn_value *x = NULL;
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!is_moved(n, n->in[i])) continue;
    const hone_quant *q = &w->of[n->in[i]->id];
    if (!q->count && i && single(n->in[i])) continue;
    if (!q->count || (x && !hone_quant_same(&w->of[x->id], q))) return;
    x = n->in[i];
  }
  for (uint32_t i = 0; i < n->n_out && x; i++) {
    const hn_value *y = n->out[i];
    if (!y || y->desc.dtype != x->desc.dtype || w->by[y->id] != NOBODY) continue;
    const hone_quant q = passed(n, x, y, w->of[x->id], false);
    if (q.count) believe(w, y, &q, OTHERS);
  }
}

hone_status hn_lower_quantisation(hn_lowering *l, hone_error *error) {
  hn_plan *p = l->plan;
  const uint32_t n = p->model->next_value_id;
  walk w = {.l = l,
            .of = HN_NEW_ARRAY(&p->arena, hone_quant, n),
            .by = HN_NEW_ARRAY(l->temp, uint8_t, n),
            .says_codes = HN_NEW_ARRAY(&p->arena, bool, n)};
  bool good = w.of && w.by && w.says_codes;
  const hone_node *last = NULL;
  for (const hone_node *k = p->model->graph->first; k && good; last = k, k = k->next) good = says(&w, k);
  if (!good) return hn_fail_memory(error, n * sizeof *w.of, "lowering");
  for (const hone_node *k = last; k; k = k->prev)
    if (moves(k)) pass_back(&w, k);
  for (const hone_node *k = p->model->graph->first; k; k = k->next)
    if (moves(k)) pass_on(&w, k);
  p->n_values = n;
  p->quant = w.of;
  p->says_codes = w.says_codes;
  return HONE_OK;
}
