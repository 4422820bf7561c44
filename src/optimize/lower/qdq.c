/* Quantised models as exporters write them: a float operator between DequantizeLinear and QuantizeLinear.
 * Where all parameters are constants, the three mean a sum of integers and one rounding: the unit's anchor is
 * QLinearConv, QLinearMatMul, QLinearGemm, QLinearAveragePool, QLinearMaxPool, QLinearAdd or, with one number
 * a channel, QLinearMul with the inputs
 *
 *   x, x scale, x zero, w, w scale, w zero, y scale, y zero, i32 bias     (the order of ONNX' QLinearConv)
 *
 * and only made when a tactic takes it; otherwise the nodes stay as they are. The bias of a MatMul is a
 * constant added behind it; one in f32 is rounded to i32. A QLinearConv or QLinearMatMul that only a
 * QLinearAdd reads, through a table of its codes or not, becomes one unit with it, a QLinearConvAdd or
 * QLinearMatMulAdd, where a tactic takes that.
 * A Relu or Clip between operator and QuantizeLinear goes when the codes cannot express what it cuts off;
 * behind a convolution it is a table of the codes otherwise. A DequantizeLinear that others read, too, stays.
 * What changes no number between the same codes is a view of them, a function of one tensor a table
 * (code_tables.c). */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/eval.h"
#include "optimize/step/qlinear.h"

#include <math.h>
#include <string.h>

bool hn_fixed(const hn_value *v) { return v && v->constant && !v->producer && !v->is_input; }

const hone_node *hn_dequantised(const hn_value *v) {
  const hone_node *n = v ? v->producer : NULL;
  if (!hn_is_op(n, "DequantizeLinear") || n->graph != v->graph || !n->in[0] || !hn_fixed(n->in[1]))
    return NULL;
  if (n->in[1]->desc.dtype != HONE_DTYPE_F32 || v->desc.dtype != HONE_DTYPE_F32) return NULL;
  return n->n_in < 3 || !n->in[2] || hn_fixed(n->in[2]) ? n : NULL;
}

bool hn_of_fixed_codes(const hn_value *v) {
  const hone_node *n = hn_dequantised(v);
  return n && hn_fixed(n->in[0]);
}

hn_value *hn_quantise_zero(const hone_node *n) { return n->n_in > 2 ? n->in[2] : NULL; }

const hone_node *hn_only_reader(const hn_value *v) {
  if (v->is_output || v->users.len != 1) return NULL;
  const hone_node *n = v->users.ptr[0].node;
  return n->graph == v->graph ? n : NULL;
}

static float code(const hone_tensor *t, bool is_signed) {
  return is_signed ? (float)*(const int8_t *)t->data : (float)*(const uint8_t *)t->data;
}

/* Whether the codes of q end before lo and hi do. */
static bool covered(const hone_node *q, float lo, float hi) {
  const bool is_signed = q->out[0]->desc.dtype == HONE_DTYPE_I8;
  if ((!is_signed && q->out[0]->desc.dtype != HONE_DTYPE_U8) ||
      hone_desc_count(&q->in[1]->constant->desc) != 1)
    return false;
  const float scale = *(const float *)q->in[1]->constant->data,
              zero = hn_quantise_zero(q) ? code(hn_quantise_zero(q)->constant, is_signed) : 0;
  return lo <= ((is_signed ? -128 : 0) - zero) * scale && hi >= ((is_signed ? 127 : 255) - zero) * scale;
}

bool hn_codes_scales_fit(const hone_node *n, const hone_node *w) {
  const hone_tensor *scale = w->in[1]->constant;
  if (hone_desc_count(&scale->desc) == 1) return true;
  const int32_t rank = w->in[0]->desc.rank;
  const bool rows = n->op->product == HONE_PRODUCT_CONV ||
                    (n->op->product == HONE_PRODUCT_GEMM && hone_node_int(n, "transB", 0));
  int64_t axis = hone_node_int(w, "axis", 1);
  if (axis < 0) axis += rank;
  return scale->desc.rank == 1 && axis == (rows ? 0 : rank - 1);
}

/* Whether both sides have the same codes, with a scale above 0: the largest code is the code of the largest
 * value. */
static bool same_codes(const hone_node *x, const hone_node *y) {
  const hn_value *a = hn_quantise_zero(x), *b = hn_quantise_zero(y);
  if (hone_desc_count(&x->in[1]->desc) != 1 || hone_desc_count(&y->in[1]->desc) != 1 ||
      x->in[0]->desc.dtype != y->out[0]->desc.dtype || !(*(const float *)x->in[1]->constant->data > 0) ||
      *(const float *)x->in[1]->constant->data != *(const float *)y->in[1]->constant->data)
    return false;
  const bool is_signed = x->in[0]->desc.dtype == HONE_DTYPE_I8;
  if (!is_signed && x->in[0]->desc.dtype != HONE_DTYPE_U8) return false;
  return (a ? code(a->constant, is_signed) : 0) == (b ? code(b->constant, is_signed) : 0);
}

typedef struct found {
  const char *anchor;
  const hone_node *node, *add, *act, *quantise, *x, *w, *bias;
  const hn_value *numbers; /* a bias in f32, which goes as i32, too */
  bool cuts;               /* the codes hold values that act cuts off: between these two */
  float lo, hi;
} found;

static bool against(hn_miss *m, hn_miss_why why, const hn_value *v) {
  m->why = why;
  m->value = v;
  return false;
}

static bool find_bias(found *f, const hn_value *v, hn_miss *m) {
  if (!hn_codes_bias_by_column(f->node, v)) return against(m, HN_MISS_BIAS, v);
  if ((f->bias = hn_dequantised(v)))
    return hn_codes_bias_fits(f->bias, f->x, f->w) || against(m, HN_MISS_BIAS, v);
  if (!hn_fixed(v) || v->desc.dtype != HONE_DTYPE_F32 || v->deferred || !v->constant->data)
    return against(m, HN_MISS_CODES, v);
  f->numbers = v;
  return true;
}

/* Columns of the weights, or filters. */
static int64_t channels_of(const found *f) {
  const hone_tensor_desc *w = &f->w->in[0]->desc;
  const bool first = f->node->op->product == HONE_PRODUCT_CONV ||
                     (f->node->op->product == HONE_PRODUCT_GEMM && hone_node_int(f->node, "transB", 0));
  return w->rank < 1 ? 0 : w->dim[first ? 0 : w->rank - 1];
}

/* The Add of one constant a column behind a MatMul, which has no bias of its own. */
static void find_added(found *f) {
  const hn_value *v = f->node->out[0];
  const hone_node *next = hn_only_reader(v);
  if (!hn_is_op(f->node, "MatMul") || !f->w || !hn_is_op(next, "Add") || next->n_in != 2) return;
  const hn_value *b = next->in[next->in[0] == v];
  const int64_t n = channels_of(f);
  if (!hn_fixed(b) && !hn_dequantised(b)) return;
  const int32_t rank = b->desc.rank;
  if (f->w->in[0]->desc.rank != 2 || rank < 1 || rank > v->desc.rank || hone_desc_count(&b->desc) != n ||
      b->desc.dim[rank - 1] != n)
    return;
  if (find_bias(f, b, &(hn_miss){0}))
    f->add = next;
  else
    f->bias = NULL;
}

/* The other operands. *m: what is against them. */
static bool find_operands(found *f, bool both, hn_miss *m) {
  const hone_node *n = f->node;
  if (both) {
    if (!(f->w = hn_dequantised(n->in[1]))) return against(m, HN_MISS_CODES, n->in[1]);
    return !hn_fixed(f->x->in[0]) && !hn_fixed(f->w->in[0]);
  }
  if (n->op->codes != HONE_CODES_WEIGHTS) return true;
  if (!(f->w = hn_dequantised(n->in[1]))) return against(m, HN_MISS_CODES, n->in[1]);
  if (!hn_fixed(f->w->in[0])) return against(m, HN_MISS_COMPUTED, f->w->in[0]);
  if (!hn_codes_scales_fit(n, f->w)) return against(m, HN_MISS_SCALES, n->in[1]);
  if (n->n_in > 2 && n->in[2]) return find_bias(f, n->in[2], m);
  find_added(f);
  return true;
}

/* A value that only the next node may read. */
static const hone_node *next_of(const hn_value *v, hn_miss *m) {
  const hone_node *next = hn_only_reader(v);
  if (next) return next;
  m->other = v->users.len ? v->users.ptr[v->users.len - 1].node : NULL;
  against(m,
          v->is_output || !m->other     ? HN_MISS_OUTPUT
          : m->other->graph == v->graph ? HN_MISS_READ
                                        : HN_MISS_BODY,
          v);
  return NULL;
}

/* What the activation cuts off, a table of a convolution's codes cuts off as well: quantisation keeps order.
 */
static bool cut_by_table(const found *f) {
  const hone_node *q = f->quantise;
  const hone_dtype t = q->out[0]->desc.dtype;
  return !strcmp(f->anchor, "QLinearConv") && (t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8) &&
         hn_quantise_zero(q) && hone_desc_count(&q->in[1]->constant->desc) == 1 && !isnan(f->lo) &&
         !isnan(f->hi) && f->lo <= f->hi;
}

/* One scale for all of the result, or, of a product of matrices, one a column. */
static bool steps_fit(const found *f, const hone_node *q) {
  const hone_tensor_desc *scale = &q->in[1]->constant->desc, *y = &q->out[0]->desc;
  if (hone_desc_count(scale) == 1 || !hn_is_op(f->node, "MatMul")) return true;
  int64_t axis = hone_node_int(q, "axis", 1);
  if (axis < 0) axis += y->rank;
  return hone_desc_known(y) && axis == y->rank - 1 && scale->rank == 1 && scale->dim[0] == y->dim[axis] &&
         !hone_node_int(q, "block_size", 0);
}

/* What follows: perhaps an activation, and the QuantizeLinear. */
static bool find_end(found *f, hn_miss *m) {
  const bool same = f->node->op->codes == HONE_CODES_SAME;
  const hn_value *v = (f->add ? f->add : f->node)->out[0];
  const hone_node *next = next_of(v, m);
  hn_unit act = {0};
  if (next && hn_pointwise_of(next, &act) && (act.op == HONE_PW_RELU || act.op == HONE_PW_CLIP)) {
    if (next->in[0] != v) return against(m, HN_MISS_QUANTISE, v);
    f->act = next;
    v = next->out[0];
    next = next_of(v, m);
  }
  if (!next) return false;
  if (!hn_is_op(next, "QuantizeLinear") || next->in[0] != v || !hn_fixed(next->in[1]) ||
      next->in[1]->desc.dtype != HONE_DTYPE_F32 ||
      (hn_quantise_zero(next) && !hn_fixed(hn_quantise_zero(next))))
    return against(m, HN_MISS_QUANTISE, v);
  f->quantise = next;
  if (!steps_fit(f, next)) return against(m, HN_MISS_SCALES, v);
  if (same && f->act) return against(m, HN_MISS_QUANTISE, f->node->out[0]);
  if (same && !same_codes(f->x, next)) return against(m, HN_MISS_SAME_CODES, v);
  if (f->numbers && !hn_codes_round_bias(f->numbers, channels_of(f), f->x, f->w, next, NULL))
    return against(m, HN_MISS_BIAS, f->numbers);
  if (!f->act) return true;
  f->lo = act.op == HONE_PW_RELU ? 0 : act.alpha, f->hi = act.op == HONE_PW_RELU ? INFINITY : act.beta;
  if (covered(next, f->lo, f->hi)) return true;
  f->cuts = cut_by_table(f);
  if (f->cuts) return true;
  m->other = f->act;
  return against(m, HN_MISS_RANGE, v);
}

static void near(hn_lowering *l, const found *f, hn_miss m) {
  const hone_node *part[] = {f->x, f->w, f->bias, f->node, f->add, f->act, f->quantise};
  if (m.why == HN_MISS_NONE) return;
  m.fusion = HN_FUSION_qdq;
  m.node[m.n_nodes++] = f->node; /* by which it is known */
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    if (part[i] && part[i] != f->node) m.node[m.n_nodes++] = part[i];
  hn_miss_add(&l->plan->misses, &m);
}

/* Q and DQ around an operator that nothing runs on codes. */
static void no_form(hn_lowering *l, const hone_node *n) {
  hn_miss m = {0};
  found f = {.node = n, .x = hn_dequantised(n->in[0])};
  if (!f.x || hn_fixed(f.x->in[0]) || n->n_out != 1 || !n->out[0]) return;
  f.quantise = next_of(n->out[0], &m);
  if (hn_is_op(f.quantise, "QuantizeLinear")) near(l, &f, (hn_miss){.why = HN_MISS_FORM});
}

/* One number a channel: what squeeze and excitation multiplies with. */
static bool is_gate(const hone_tensor_desc *d, const hone_tensor_desc *of) {
  if (!hone_desc_known(d) || !hone_desc_known(of) || d->rank != of->rank || d->rank < 3) return false;
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] != (i < 2 ? of->dim[i] : 1)) return false;
  return true;
}

/* A product with one number a channel; other products stay programs. */
static bool find_gated(const hone_node *n, found *f, hn_miss *m) {
  const hone_tensor_desc *y = &n->out[0]->desc;
  const bool second = is_gate(&n->in[1]->desc, y), first = is_gate(&n->in[0]->desc, y);
  if (first == second || !hone_desc_same_dims(&n->in[first]->desc, y)) return false;
  *f = (found){.anchor = "QLinearMul", .node = n};
  f->x = hn_dequantised(n->in[first]), f->w = hn_dequantised(n->in[!first]);
  return f->x && f->w && !hn_fixed(f->x->in[0]) && !hn_fixed(f->w->in[0]) && find_end(f, m);
}

static bool find(hn_lowering *l, const hn_unit *u, found *f) {
  const hone_node *n = u->node;
  if (!n || !n->op || u->n_nodes != 1) return false;
  const bool both = u->kind == HN_UNIT_POINTWISE && n->n_in == 2 && n->n_out == 1 && n->out[0],
             sum = both && u->op == HONE_PW_ADD;
  if (both && u->op == HONE_PW_MUL && find_gated(n, f, &(hn_miss){0})) return true;
  if (!sum && (u->kind != HN_UNIT_NODE || !n->op->on_codes)) {
    if (n->n_in) no_form(l, n);
    return false;
  }
  *f = (found){.anchor = sum ? "QLinearAdd" : n->op->on_codes, .node = n, .x = hn_dequantised(n->in[0])};
  if (!f->x || n->n_out != 1 || !n->out[0]) return false;
  hn_miss m = {0};
  if (find_operands(f, sum, &m) && find_end(f, &m)) return true;
  near(l, f, m);
  return false;
}

/* The codes between those of f->lo and f->hi; NULL when memory is short. */
static hn_value *cut_table(hn_lowering *l, const found *f) {
  enum { CODES = 256 };
  const int64_t n = CODES;
  const hone_dtype type = f->quantise->out[0]->desc.dtype;
  const bool is_signed = type == HONE_DTYPE_I8;
  const float scale = *(const float *)f->quantise->in[1]->constant->data,
              zero = code(hn_quantise_zero(f->quantise)->constant, is_signed), least = is_signed ? -128 : 0,
              most = is_signed ? 127 : 255, lo = fminf(fmaxf(rintf(f->lo / scale) + zero, least), most),
              hi = fminf(fmaxf(rintf(f->hi / scale) + zero, least), most);
  hone_tensor t = {.desc = hone_desc(type, 1, &n), .data = hn_malloc(CODES)};
  if (!t.data) return NULL;
  for (int i = 0; i < CODES; i++) {
    const float c = is_signed ? (float)(int8_t)i : (float)i;
    ((uint8_t *)t.data)[i] = (uint8_t)(int)fminf(fmaxf(c, lo), hi);
  }
  return hn_plan_constant(l, f->act->out[0], &t);
}

/* The f32 bias as i32, in the place of what the operator makes; NULL when memory is short. */
static hn_value *rounded_bias(hn_lowering *l, const found *f) {
  hone_tensor t;
  if (!hn_codes_round_bias(f->numbers, channels_of(f), f->x, f->w, f->quantise, &t) || !t.data) return NULL;
  return hn_plan_constant(l, f->node->out[0], &t);
}

/* The unit in the place of its QuantizeLinear; false when memory is short. *taken: some tactic runs it. */
static bool make_unit(hn_lowering *l, const found *f, bool *taken) {
  hn_unit *u = HN_NEW(l->temp, hn_unit), *root = l->by_value[f->quantise->out[0]->id];
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, HN_QLINEAR_TABLE + 1);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, 4);
  if (!u || !in || !nodes) return false;
  in[HN_QLINEAR_X] = f->x->in[0], in[HN_QLINEAR_X_SCALE] = f->x->in[1],
  in[HN_QLINEAR_X_ZERO] = hn_quantise_zero(f->x);
  if (f->w)
    in[HN_QLINEAR_W] = f->w->in[0], in[HN_QLINEAR_W_SCALE] = f->w->in[1],
    in[HN_QLINEAR_W_ZERO] = hn_quantise_zero(f->w);
  in[HN_QLINEAR_Y_SCALE] = f->quantise->in[1], in[HN_QLINEAR_Y_ZERO] = hn_quantise_zero(f->quantise);
  if (f->bias) in[HN_QLINEAR_BIAS] = f->bias->in[0];
  if (f->numbers && !(in[HN_QLINEAR_BIAS] = rounded_bias(l, f))) return false;
  if (f->cuts && !(in[HN_QLINEAR_TABLE] = cut_table(l, f))) return false;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = f->cuts ? "QLinearConvTable" : f->anchor,
                 .node = f->node,
                 .n_in = f->cuts ? HN_QLINEAR_TABLE + 1 : HN_QLINEAR_INPUTS,
                 .in = in,
                 .out = f->quantise->out[0],
                 .nodes = nodes,
                 .order = root->order};
  const hone_node *part[] = {f->node, f->add, f->act, f->quantise};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    if (part[i]) nodes[u->n_nodes++] = part[i];
  *taken = hn_lower_takes(l, u);
  if (!*taken && f->numbers) l->slot_of[f->node->out[0]->id] = NULL; /* as below */
  if (!*taken && f->cuts)
    l->slot_of[f->act->out[0]->id] = NULL; /* the activation makes its value after all */
  if (!*taken) return true;
  for (size_t i = 0; i + 1 < sizeof part / sizeof *part; i++) {
    if (!part[i]) continue;
    l->by_value[part[i]->out[0]->id]->into = root; /* for the sweep below */
    l->by_value[part[i]->out[0]->id] = root;
  }
  *root = *u; /* in its place in the list */
  return true;
}

const char *hn_codes_joined(const hn_unit *u, hn_joined with) {
  static const char *const names[][3] = {{"QLinearConv", "QLinearConvAdd", "QLinearConvTable"},
                                         {"QLinearConvTable", "QLinearConvAdd", NULL},
                                         {"QLinearMatMul", "QLinearMatMulAdd", "QLinearMatMulTable"},
                                         {"QLinearMatMulTable", "QLinearMatMulAdd", NULL}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(u->anchor, names[i][0])) return names[i][with];
  return NULL;
}

/* The unit of a convolution or product, with a table or without, whose codes nobody reads but the QLinearAdd
 * `sum`, through its operand `side`; NULL: there is none. */
static hn_unit *product_of(const hn_lowering *l, const hn_unit *sum, uint32_t side) {
  const hn_value *codes = sum->in[side];
  hn_unit *u = l->by_value[codes->id];
  const bool fits = u && hn_codes_joined(u, HN_JOINED_SUM) && !u->into &&
                    (u->n_in == HN_QLINEAR_INPUTS || u->n_in == HN_QLINEAR_TABLE + 1);
  const hone_node *d = fits ? hn_only_reader(codes) : NULL;
  /* Both zero points say what type the codes have. */
  if (!d || hn_only_reader(d->out[0]) != sum->node || !u->in[HN_QLINEAR_Y_ZERO] ||
      !sum->in[HN_QLINEAR_Y_ZERO])
    return NULL;
  return u;
}

/* Whether a tactic takes all of it, behind a table in less time than both parts: what makes the sum's codes
 * then takes long, and large convolutions do not hide it. */
static bool pays(hn_lowering *l, const hn_unit *whole, const hn_unit *conv, const hn_unit *sum) {
  hn_estimate all, first, second;
  return hn_lower_predict(l, whole, &all) &&
         (whole->n_in <= HN_QLINEAR_SUM_TABLE || !hn_lower_predict(l, conv, &first) ||
          !hn_lower_predict(l, sum, &second) || all.seconds < first.seconds + second.seconds);
}

/* A convolution or product and the sum behind it as one unit, in the place of the sum, where that pays; false
 * when memory is short. */
static bool join_sum(hn_lowering *l, hn_unit *sum, uint32_t side) {
  hn_unit *conv = product_of(l, sum, side), *u = HN_NEW(l->temp, hn_unit);
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, HN_QLINEAR_TABLE_ADD_INPUTS);
  if (!u || !in) return false;
  if (!conv) return true;
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, conv->n_nodes + sum->n_nodes);
  const uint32_t other = side == HN_QLINEAR_X ? HN_QLINEAR_W : HN_QLINEAR_X;
  const bool table = conv->n_in > HN_QLINEAR_TABLE;
  if (!nodes) return false;
  memcpy(in, conv->in, HN_QLINEAR_INPUTS * sizeof *in);
  for (uint32_t i = 0; i < 3; i++) in[HN_QLINEAR_ADDED + i] = sum->in[other + i]; /* codes, scale, zero */
  in[HN_QLINEAR_SUM_SCALE] = sum->in[HN_QLINEAR_Y_SCALE],
  in[HN_QLINEAR_SUM_ZERO] = sum->in[HN_QLINEAR_Y_ZERO];
  if (table)
    in[HN_QLINEAR_SUM_TABLE] = conv->in[HN_QLINEAR_TABLE], in[HN_QLINEAR_SUM_TABLE_SCALE] = sum->in[side + 1],
    in[HN_QLINEAR_SUM_TABLE_ZERO] = sum->in[side + 2];
  memcpy(nodes, conv->nodes, conv->n_nodes * sizeof *nodes);
  memcpy(nodes + conv->n_nodes, sum->nodes, sum->n_nodes * sizeof *nodes);
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = hn_codes_joined(conv, HN_JOINED_SUM),
                 .node = conv->node,
                 .n_in = table ? HN_QLINEAR_TABLE_ADD_INPUTS : HN_QLINEAR_ADD_INPUTS,
                 .in = in,
                 .out = sum->out,
                 .n_nodes = conv->n_nodes + sum->n_nodes,
                 .nodes = nodes,
                 .order = sum->order};
  if (!pays(l, u, conv, sum)) return true;
  for (uint32_t i = 0; i < conv->n_nodes; i++) l->by_value[conv->nodes[i]->out[0]->id] = sum;
  conv->into = sum; /* for the sweep */
  *sum = *u;
  return true;
}

static hone_status join_sums(hn_lowering *l, hone_error *error) {
  static const uint32_t sides[] = {HN_QLINEAR_X, HN_QLINEAR_W};
  for (size_t i = 0; i < l->units.len; i++)
    for (int k = 0; k < 2; k++) {
      hn_unit *u = l->units.ptr[i];
      if (u->into || u->kind != HN_UNIT_NODE || strcmp(u->anchor, "QLinearAdd") != 0) continue;
      if (!join_sum(l, u, sides[k])) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
    }
  return HONE_OK;
}

/* A Flatten, Reshape... between DequantizeLinear and QuantizeLinear with the same codes is one of the codes;
 * false when memory is short. *made: it is. */
static bool view_codes(hn_lowering *l, hn_unit *u, bool *made) {
  const hone_node *x = u->kind == HN_UNIT_VIEW && !u->into ? hn_dequantised(u->in[0]) : NULL;
  const hone_node *q = x && !hn_fixed(x->in[0]) ? hn_only_reader(u->out) : NULL;
  *made = false;
  if (!hn_is_op(q, "QuantizeLinear") || q->in[0] != u->out || !hn_fixed(q->in[1]) ||
      (hn_quantise_zero(q) && !hn_fixed(hn_quantise_zero(q))))
    return true;
  if (q->in[1]->desc.dtype != HONE_DTYPE_F32 || !same_codes(x, q) || q->out[0]->is_output ||
      !hone_desc_known(&x->in[0]->desc) || !hone_desc_known(&u->out->desc))
    return true;
  hn_unit *root = l->by_value[q->out[0]->id];
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, 1);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, u->n_nodes + 1);
  if (!in || !nodes) return false;
  in[0] = x->in[0];
  memcpy(nodes, u->nodes, u->n_nodes * sizeof *nodes);
  nodes[u->n_nodes] = q;
  u->into = l->by_value[u->out->id] = root;
  *root = (hn_unit){.kind = HN_UNIT_VIEW,
                    .anchor = u->anchor,
                    .node = u->node,
                    .n_in = 1,
                    .in = in,
                    .out = q->out[0],
                    .n_nodes = u->n_nodes + 1,
                    .nodes = nodes,
                    .order = root->order};
  return *made = true;
}

/* The first integer unit when only integer units read what DequantizeLinear n makes, and so nobody needs it.
 */
static hn_unit *swallowed_by(const hn_lowering *l, const hone_node *n, const bool *integer) {
  const hn_value *v = n->out[0];
  if (v->is_output || v->users.len == 0) return NULL;
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *r = v->users.ptr[i].node;
    if (r->graph != v->graph || !r->n_out || !r->out[0] || !integer[r->out[0]->id]) return NULL;
  }
  return l->by_value[v->users.ptr[0].node->out[0]->id];
}

hn_value *hn_plan_constant(hn_lowering *l, const hn_value *v, hone_tensor *made) {
  const size_t bytes = (size_t)hone_desc_bytes(&made->desc);
  hn_value *c = HN_NEW(&l->plan->arena, hn_value); /* its slot names it as long as the plan lives */
  hone_tensor *t = HN_NEW(&l->plan->arena, hone_tensor);
  void *data = hn_arena_aligned(&l->plan->arena, bytes ? bytes : 1, HN_MEM_ALIGN);
  const bool there = c && t && data;
  if (there) {
    memcpy(data, made->data, bytes);
    *t = (hone_tensor){.desc = made->desc, .data = data};
    *c = *v;
    c->desc = made->desc;
    c->producer = NULL;
    c->is_output = false;
    c->constant = t;
    l->plan->constant_bytes += bytes;
  }
  hn_free(made->data);
  return there && hn_lower_constant(l, c, HONE_LAYOUT_ROW_MAJOR) != HN_NO_SLOT ? c : NULL;
}

hone_status hn_codes_compute(hn_lowering *l, const hn_value *v, hn_value **out, hone_error *error) {
  const hone_node *n = v->producer;
  const hone_tensor *in[3] = {n->in[0]->constant, n->in[1]->constant,
                              hn_quantise_zero(n) ? hn_quantise_zero(n)->constant : NULL};
  hone_tensor made = {0}, *result[] = {&made};
  hn_budget budget = {0};
  *out = NULL;
  hone_status status = hn_eval_node(n, in, result, l->temp, &budget, error);
  if (status != HONE_OK) return status;
  *out = hn_plan_constant(l, v, &made);
  return *out ? HONE_OK : hn_fail_memory(error, 0, "dequantised weights");
}

/* u stands for n, too, which comes before its own nodes. */
static bool own(hn_lowering *l, hn_unit *u, const hone_node *n) {
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, u->n_nodes + 1);
  if (!nodes) return false;
  nodes[0] = n;
  memcpy(nodes + 1, u->nodes, u->n_nodes * sizeof *nodes);
  u->nodes = nodes;
  u->n_nodes++;
  return true;
}

/* Dequantises constants that float operators read, and hands them to their readers. */
static hone_status fold(hn_lowering *l, hone_error *error) {
  hn_value **made = HN_NEW_ARRAY(l->temp, hn_value *, l->plan->model->next_value_id);
  bool any = false;
  if (!made) return hn_fail_memory(error, l->plan->model->next_value_id, "lowering");
  for (size_t i = 0; i < l->units.len; i++) {
    hn_unit *u = l->units.ptr[i];
    if (u->into || u->n_nodes != 1 || !hn_is_op(u->node, "DequantizeLinear") || !hn_dequantised(u->out) ||
        !hn_fixed(u->node->in[0]) || u->out->is_output)
      continue;
    hone_status status = hn_codes_compute(l, u->out, &made[u->out->id], error);
    if (status != HONE_OK) return status;
    any = true;
  }
  for (size_t i = 0; i < l->units.len && any; i++) {
    hn_unit *u = l->units.ptr[i];
    hn_value **in = NULL;
    for (uint32_t k = 0; k < u->n_in; k++) {
      hn_value *c = u->in[k] ? made[u->in[k]->id] : NULL;
      if (!c) continue;
      if (!in) {
        if (!(in = HN_NEW_ARRAY(l->temp, hn_value *, u->n_in)))
          return hn_fail_memory(error, u->n_in, "lowering");
        memcpy(in, u->in, u->n_in * sizeof *in);
        u->in = in;
      }
      in[k] = c;
      hn_unit *from = l->by_value[c->id];
      if (from == u || from->into) continue;
      from->into = u; /* the first reader */
      if (!own(l, u, from->node)) return hn_fail_memory(error, u->n_nodes, "lowering");
    }
  }
  for (size_t i = 0; i < l->units.len && any; i++) /* without a reader in this graph */
    if (l->units.ptr[i]->out && made[l->units.ptr[i]->out->id] && !l->units.ptr[i]->into)
      l->units.ptr[i]->into = l->units.ptr[i];
  return HONE_OK;
}

hone_status hn_lower_qdq(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->level < 2 || !hn_fuses(l->plan, HN_FUSION_qdq)) return HONE_OK;
  /* by value: made by the float operator inside of an integer unit */
  bool *integer = HN_NEW_ARRAY(l->temp, bool, l->plan->model->next_value_id), any = false;
  if (!integer) return hn_fail_memory(error, l->plan->model->next_value_id, "lowering");
  for (size_t i = 0; i < l->units.len; i++) {
    found f;
    bool taken = false;
    if (l->units.ptr[i]->into || !find(l, l->units.ptr[i], &f)) continue;
    if (!make_unit(l, &f, &taken)) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
    if (!taken && strcmp(f.anchor, "QLinearMul") != 0) near(l, &f, (hn_miss){.why = HN_MISS_TACTIC});
    if (taken) any = integer[f.node->out[0]->id] = true;
    if (taken && f.add) integer[f.add->out[0]->id] = true;
  }
  for (size_t i = 0; i < l->units.len; i++) {
    bool made = false;
    hn_value *v = l->units.ptr[i]->out;
    if (!view_codes(l, l->units.ptr[i], &made)) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
    if (made) any = integer[v->id] = true;
  }
  hone_status status = hn_lower_tables(l, integer, &any, error);
  if (status == HONE_OK) status = hn_lower_codes_pointwise(l, integer, &any, error);
  if (status == HONE_OK) status = hn_lower_codes_norms(l, integer, &any, error);
  if (status == HONE_OK) status = hn_lower_codes_sums(l, integer, &any, error);
  if (status == HONE_OK && any) status = join_sums(l, error);
  if (status != HONE_OK) return status;
  for (size_t i = 0; i < l->units.len && any; i++) {
    hn_unit *u = l->units.ptr[i], *by = NULL;
    if (!u->into && u->n_nodes == 1 && hn_is_op(u->node, "DequantizeLinear"))
      by = swallowed_by(l, u->node, integer);
    if (!by) continue;
    if (!own(l, by, u->node)) return hn_fail_memory(error, by->n_nodes, "lowering");
    l->by_value[u->out->id] = by;
    u->into = by;
  }
  if ((status = fold(l, error)) != HONE_OK) return status;
  size_t kept = 0;
  for (size_t i = 0; i < l->units.len; i++)
    if (!l->units.ptr[i]->into) l->units.ptr[kept++] = l->units.ptr[i];
  l->units.len = kept;
  return HONE_OK;
}
