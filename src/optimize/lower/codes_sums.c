/* Products of codes whose result is not quantised, as TensorRT's rules and training with quantisation leave
 * them in front of a sum: Conv, MatMul or Gemm of two DequantizeLinear, the weights constant, or MatMul of
 * two activations, is one unit, ConvIntegerToFloat or MatMulIntegerToFloat, with the inputs
 *   x, x zero, w, w zero, scale of the sums, bias in f32
 * where a tactic takes it. Where functions of f32 follow and then a QuantizeLinear, as of tools that quantise
 * what products read and not what they make, all of it is one unit, ConvIntegerToCodes or
 * MatMulIntegerToCodes, with two more inputs
 *   y scale, y zero
 * and the functions as its epilogue. Runs behind qdq.c, which takes what ends in QuantizeLinear at once. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

enum { X, X_ZERO, W, W_ZERO, SCALE, BIAS, INPUTS, Y_SCALE = INPUTS, Y_ZERO, CODED_INPUTS };

typedef struct found {
  const hone_node *node, *x, *w, *quantise; /* quantise: NULL where the result stays f32 */
  hn_unit *function[HONE_MAX_EPILOGUE];
  uint32_t n_functions;
  bool conv, by_channel; /* by_channel: x has a scale for each channel */
  bool pair;             /* of two activations */
} found;

static bool plain_gemm(const hone_node *n) {
  return hone_node_float(n, "alpha", 1) == 1 && hone_node_float(n, "beta", 1) == 1 &&
         !hone_node_int(n, "transA", 0);
}

/* The bias, which nobody else reads when it is codes, too. */
static bool bias_fits(const hone_node *n) {
  const hn_value *v = n->n_in > 2 ? n->in[2] : NULL;
  const hone_node *d = hn_dequantised(v);
  return !v ||
         (hn_codes_bias_by_column(n, v) && (d ? hn_fixed(d->in[0]) && hn_only_reader(v) == n : hn_fixed(v)));
}

/* The axis of the scales of a QuantizeLinear or DequantizeLinear of v. */
static int64_t axis_of(const hone_node *n, const hn_value *v) {
  const int64_t axis = hone_node_int(n, "axis", 1);
  return axis < 0 ? axis + v->desc.rank : axis;
}

/* Codes around 0 with a scale for each channel that one filter alone reads: part of that filter's scale. */
static bool scales_by_channel(const found *f) {
  const hone_tensor_desc *x = &f->x->in[0]->desc, *w = &f->w->in[0]->desc, *s = &f->x->in[1]->desc;
  const hn_value *zero = hn_quantise_zero(f->x);
  if (!f->conv || (x->dtype != HONE_DTYPE_U8 && x->dtype != HONE_DTYPE_I8) || x->rank < 3 ||
      w->rank != x->rank || s->rank != 1 || axis_of(f->x, f->x->in[0]) != 1 ||
      hone_node_int(f->x, "block_size", 0) || s->dim[0] != x->dim[1] || w->dim[0] != s->dim[0] ||
      w->dim[1] != 1 || hone_node_int(f->node, "group", 1) != s->dim[0])
    return false;
  for (int64_t i = 0; zero && i < hone_desc_count(&zero->desc); i++)
    if (((const char *)zero->constant->data)[i]) return false;
  return true;
}

/* A QuantizeLinear to 8 bits with a scale for each channel of the product. */
static bool to_codes_by_channel(const hone_node *q, const found *f) {
  const hn_value *scale = hn_is_op(q, "QuantizeLinear") ? q->in[1] : NULL,
                 *zero = scale ? hn_quantise_zero(q) : NULL;
  if (!scale || !hn_fixed(scale) || scale->desc.dtype != HONE_DTYPE_F32 || (zero && !hn_fixed(zero)) ||
      hone_node_int(q, "block_size", 0) || !hone_desc_known(&q->out[0]->desc))
    return false;
  const hone_tensor_desc *y = &q->out[0]->desc;
  const int64_t axis = f->conv ? 1 : y->rank - 1;
  return (y->dtype == HONE_DTYPE_U8 || y->dtype == HONE_DTYPE_I8) && scale->desc.rank == 1 && axis >= 0 &&
         axis_of(q, q->out[0]) == axis && scale->desc.dim[0] == y->dim[axis];
}

static bool find(const hn_unit *u, found *f) {
  const hone_node *n = u->node;
  if (u->into || u->kind != HN_UNIT_NODE || u->n_nodes != 1 || !n || !n->op || n->n_out != 1 || !n->out[0] ||
      n->n_in < 2)
    return false;
  const bool gemm = hn_is_op(n, "Gemm");
  *f = (found){
      .node = n, .x = hn_dequantised(n->in[0]), .w = hn_dequantised(n->in[1]), .conv = hn_is_op(n, "Conv")};
  if (!(f->conv || hn_is_op(n, "MatMul") || (gemm && plain_gemm(n))) || !f->x || !f->w) return false;
  f->by_channel = hone_desc_count(&f->x->in[1]->constant->desc) != 1;
  f->pair = hn_is_op(n, "MatMul") && !hn_fixed(f->w->in[0]);
  if (f->by_channel && !scales_by_channel(f)) return false;
  /* The scale takes the place of the f32 weights: nobody else may want these. */
  return !hn_fixed(f->x->in[0]) && (f->pair || hn_fixed(f->w->in[0])) && hn_only_reader(f->w->out[0]) == n &&
         (f->pair ? hn_of_codes(n->in[1]) != NULL : hn_codes_scales_fit(n, f->w)) && bias_fits(n);
}

/* What follows, as far as it is an epilogue, and the QuantizeLinear behind it, if any. */
static void find_end(hn_lowering *l, const hn_unit *u, found *f) {
  const hn_value *v = u->out;
  for (;;) {
    const hone_node *q = hn_only_reader(v);
    if (q && (hn_to_codes(q) || to_codes_by_channel(q, f)) && q->in[0] == v) {
      const hn_unit *root = l->by_value[q->out[0]->id];
      if (!root->into && root->n_nodes == 1) f->quantise = q;
      return;
    }
    hn_unit *next = f->n_functions < HONE_MAX_EPILOGUE ? hn_lower_next_function(l, u, v) : NULL;
    if (!next) return;
    f->function[f->n_functions++] = next;
    v = next->out;
  }
}

/* All of it in the place of its QuantizeLinear; false when memory is short. *taken: some tactic runs it. */
static bool make_coded(hn_lowering *l, hn_unit *at, const found *f, hn_value *const *in, bool *taken) {
  const hone_node *q = f->quantise, **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, 2);
  hn_value **all = HN_NEW_ARRAY(l->temp, hn_value *, CODED_INPUTS);
  hn_unit *u = HN_NEW(l->temp, hn_unit), *root = l->by_value[q->out[0]->id],
          **parts = HN_NEW_ARRAY(l->temp, hn_unit *, f->n_functions + 1);
  hn_estimate estimate;
  if (!nodes || !all || !u || !parts) return false;
  memcpy(all, in, INPUTS * sizeof *all);
  memcpy(parts, f->function, f->n_functions * sizeof *parts);
  all[Y_SCALE] = q->in[1], all[Y_ZERO] = hn_quantise_zero(q);
  nodes[0] = f->node, nodes[1] = q;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = f->conv ? "ConvIntegerToCodes" : "MatMulIntegerToCodes",
                 .node = f->node,
                 .n_in = CODED_INPUTS,
                 .in = all,
                 .out = q->out[0],
                 .n_nodes = 2,
                 .nodes = nodes,
                 .n_absorbed = f->n_functions,
                 .absorbed = parts,
                 .order = root->order};
  *taken = hn_lower_predict(l, u, &estimate);
  if (!*taken) return true;
  at->into = l->by_value[f->node->out[0]->id] = root; /* for the sweep in qdq.c */
  for (uint32_t i = 0; i < f->n_functions; i++) parts[i]->into = root;
  *root = *u;
  return true;
}

/* x scale times w scale, one or one an output channel; NULL when memory is short. */
static hn_value *scales(hn_lowering *l, const found *f) {
  const hone_tensor *x = f->x->in[1]->constant, *w = f->w->in[1]->constant;
  const int64_t xs = hone_desc_count(&x->desc), ws = hone_desc_count(&w->desc), n = xs > ws ? xs : ws;
  hone_tensor t = {.desc = hone_desc(HONE_DTYPE_F32, 1, &n), .data = hn_malloc((size_t)n * sizeof(float))};
  if (!t.data) return NULL;
  for (int64_t i = 0; i < n; i++)
    ((float *)t.data)[i] =
        ((const float *)x->data)[xs == 1 ? 0 : i] * ((const float *)w->data)[ws == 1 ? 0 : i];
  return hn_plan_constant(l, f->w->out[0], &t);
}

static hone_status make_unit(hn_lowering *l, hn_unit *at, const found *f, bool *taken, hone_error *error) {
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, INPUTS);
  const hone_node *n = f->node;
  hn_unit u = *at;
  if (!in) return hn_fail_memory(error, INPUTS * sizeof *in, "lowering");
  in[X] = f->x->in[0], in[X_ZERO] = f->by_channel ? NULL : hn_quantise_zero(f->x);
  in[W] = f->w->in[0], in[W_ZERO] = hn_quantise_zero(f->w);
  in[BIAS] = n->n_in > 2 ? n->in[2] : NULL;
  const bool codes = hn_dequantised(in[BIAS]) != NULL;
  hone_status status = codes ? hn_codes_compute(l, n->in[2], &in[BIAS], error) : HONE_OK;
  if (status != HONE_OK) return status;
  if (!(in[SCALE] = scales(l, f))) return hn_fail_memory(error, 0, "scales");
  if (f->quantise && !make_coded(l, at, f, in, taken)) return hn_fail_memory(error, sizeof u, "lowering");
  if (*taken) return HONE_OK;
  u.anchor = f->conv ? "ConvIntegerToFloat" : "MatMulIntegerToFloat";
  u.n_in = INPUTS;
  u.in = in;
  *taken = hn_lower_takes(l, &u);
  if (*taken) {
    *at = u;
    return HONE_OK;
  }
  l->slot_of[f->w->out[0]->id] = NULL;        /* the weights are dequantised after all, */
  if (codes) l->slot_of[n->in[2]->id] = NULL; /* and the bias */
  return HONE_OK;
}

hone_status hn_lower_codes_sums(hn_lowering *l, bool *integer, bool *any, hone_error *error) {
  for (size_t i = 0; i < l->units.len; i++) {
    found f;
    bool taken = false;
    if (!find(l->units.ptr[i], &f)) continue;
    find_end(l, l->units.ptr[i], &f);
    const hone_status status = make_unit(l, l->units.ptr[i], &f, &taken, error);
    if (status != HONE_OK) return status;
    if (taken) integer[f.node->out[0]->id] = *any = true;
  }
  return HONE_OK;
}
