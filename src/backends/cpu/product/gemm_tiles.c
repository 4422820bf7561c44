/* Gemm: alpha * op(A) x op(B) + beta * C.  alpha goes into the packed B, a C of one row into the bias, a full
 * C is added like a residual. */
#include <string.h>

#include "backends/cpu/product/matmul_step.h"
#include "backends/cpu/kernels/features.h"

static bool describe_c(const hone_step *s, hn_matmul_step *d, float beta, bool *bias, hone_reason *why) {
  *bias = false;
  if (s->n_anchor_inputs < 3 || !hn_step_has(s, 2) || beta == 0) return true;
  const hone_tensor_desc *c = &s->input[2].desc;
  int64_t count = hone_desc_count(c), rows = c->rank > 1 ? c->dim[c->rank - 2] : 1;
  if (c->layout != HONE_LAYOUT_ROW_MAJOR || c->rank > 2) return hn_refuse(why, "C is not row-major");
  bool vector = rows == 1 && (count == d->p.n || count == 1);
  if (vector && s->input[2].constant) {
    *bias = true;
    d->bias_scale = beta;
    return true;
  }
  if (beta != 1) return hn_refuse(why, "beta is %g and C is no constant row", (double)beta);
  if (vector && count == d->p.n) {
    d->bias_input = 2;
    return true;
  }
  if (count != d->p.m * d->p.n || rows != d->p.m) return hn_refuse(why, "C broadcasts along rows");
  if (s->n_epilogue && !(s->n_epilogue == 1 && s->epilogue[0].kind == HONE_EPI_ACT &&
                         (s->epilogue[0].act == HONE_PW_RELU || s->epilogue[0].act == HONE_PW_CLIP ||
                          s->epilogue[0].act == HONE_PW_LEAKYRELU)))
    return hn_refuse(why, "a full C together with this epilogue");
  d->residual_input = 2;
  return true;
}

bool hn_matmul_describe_gemm(const hone_step *s, const hone_machine *m, hn_matmul_step *d, hone_reason *why) {
  memset(d, 0, sizeof *d);
  if (!hn_step_is_f32(s, why)) return false;
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc;
  if (a->rank != 2 || b->rank != 2 || a->layout != HONE_LAYOUT_ROW_MAJOR ||
      b->layout != HONE_LAYOUT_ROW_MAJOR || s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major matrices");
  bool ta = hone_node_int(s->node, "transA", 0) != 0, tb = hone_node_int(s->node, "transB", 0) != 0,
       bias = false;
  hn_matmul *p = &d->p;
  p->isa = hn_isa_of(m->isa);
  if (!hn_gemm_find(p->isa)) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(p->isa));
  p->m = a->dim[ta], p->k = a->dim[!ta], p->n = b->dim[!tb];
  if (b->dim[tb] != p->k) return hn_refuse(why, "inner dimensions differ");
  p->a_row = ta ? 1 : p->k, p->a_col = ta ? p->m : 1;
  p->b_row = tb ? 1 : p->n, p->b_col = tb ? p->k : 1;
  p->alpha = hone_node_float(s->node, "alpha", 1.0f);
  p->packed = s->input[1].constant != NULL;
  if (!hn_epilogue_accepts(s, p->isa, true, why)) return false;
  if (!describe_c(s, d, hone_node_float(s->node, "beta", 1.0f), &bias, why)) return false;
  hn_matmul_step_plan(d, m, bias);
  return true;
}
