/* Products of codes whose result is not quantised, as TensorRT's rules and training with quantisation leave
 * them in front of a sum: Conv, MatMul or Gemm of two DequantizeLinear, the weights constant, is one unit,
 * ConvIntegerToFloat or MatMulIntegerToFloat, with the inputs
 *   x, x zero, w, w zero, scale of the sums, bias in f32
 * where a tactic takes it. Runs behind qdq.c, which takes what ends in QuantizeLinear. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

enum { X, X_ZERO, W, W_ZERO, SCALE, BIAS, INPUTS };

typedef struct found {
  const hone_node *node, *x, *w;
  bool conv;
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

static bool find(const hn_unit *u, found *f) {
  const hone_node *n = u->node;
  if (u->into || u->kind != HN_UNIT_NODE || u->n_nodes != 1 || !n || !n->op || n->n_out != 1 || !n->out[0] ||
      n->n_in < 2)
    return false;
  const bool gemm = hn_is_op(n, "Gemm");
  *f = (found){n, hn_dequantised(n->in[0]), hn_dequantised(n->in[1]), hn_is_op(n, "Conv")};
  if (!(f->conv || hn_is_op(n, "MatMul") || (gemm && plain_gemm(n))) || !f->x || !f->w) return false;
  /* The scale takes the place of the f32 weights: nobody else may want these. */
  return !hn_fixed(f->x->in[0]) && hn_fixed(f->w->in[0]) && hn_only_reader(f->w->out[0]) == n &&
         hone_desc_count(&f->x->in[1]->constant->desc) == 1 && hn_codes_scales_fit(n, f->w) && bias_fits(n);
}

/* x scale times w scale, one or one a channel; NULL when memory is short. */
static hn_value *scales(hn_lowering *l, const found *f) {
  const hone_tensor *x = f->x->in[1]->constant, *w = f->w->in[1]->constant;
  const int64_t n = hone_desc_count(&w->desc);
  hone_tensor t = {.desc = hone_desc(HONE_DTYPE_F32, 1, &n), .data = hn_malloc((size_t)n * sizeof(float))};
  if (!t.data) return NULL;
  for (int64_t i = 0; i < n; i++)
    ((float *)t.data)[i] = *(const float *)x->data * ((const float *)w->data)[i];
  return hn_plan_constant(l, f->w->out[0], &t);
}

static hone_status make_unit(hn_lowering *l, hn_unit *at, const found *f, bool *taken, hone_error *error) {
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, INPUTS);
  const hone_node *n = f->node;
  hn_unit u = *at;
  if (!in) return hn_fail_memory(error, INPUTS * sizeof *in, "lowering");
  in[X] = f->x->in[0], in[X_ZERO] = hn_quantise_zero(f->x);
  in[W] = f->w->in[0], in[W_ZERO] = hn_quantise_zero(f->w);
  in[BIAS] = n->n_in > 2 ? n->in[2] : NULL;
  const bool codes = hn_dequantised(in[BIAS]) != NULL;
  hone_status status = codes ? hn_codes_compute(l, n->in[2], &in[BIAS], error) : HONE_OK;
  if (status != HONE_OK) return status;
  if (!(in[SCALE] = scales(l, f))) return hn_fail_memory(error, 0, "scales");
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
    const hone_status status = make_unit(l, l->units.ptr[i], &f, &taken, error);
    if (status != HONE_OK) return status;
    if (taken) integer[f.node->out[0]->id] = *any = true;
  }
  return HONE_OK;
}
