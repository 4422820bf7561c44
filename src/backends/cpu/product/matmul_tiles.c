/* MatMul of any ranks: constant B packed at plan time; B known only at run time (attention) packed block by
 * block. */
#include <string.h>

#include "backends/cpu/product/matmul_step.h"
#include "backends/cpu/kernels/features.h"

bool hn_matmul_describe_matmul(const hone_step *s, const hone_machine *m, hn_matmul_step *d,
                               hone_reason *why) {
  memset(d, 0, sizeof *d);
  if (!hn_step_is_f32(s, why)) return false;
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  if (a->layout != HONE_LAYOUT_ROW_MAJOR || b->layout != HONE_LAYOUT_ROW_MAJOR ||
      y->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "operands are not row-major");
  if (a->rank < 1 || b->rank < 1) return hn_refuse(why, "an operand is a scalar");
  hn_matmul *p = &d->p;
  p->isa = hn_isa_of(m->isa);
  p->alpha = 1;
  if (!hn_gemm_find(p->isa)) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(p->isa));
  p->k = a->dim[a->rank - 1];
  p->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
  p->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  p->a_row = p->k, p->a_col = 1, p->b_row = p->n, p->b_col = 1;
  if (p->n == 1) p->b_row = 1;
  if ((b->rank > 1 ? b->dim[b->rank - 2] : b->dim[0]) != p->k)
    return hn_refuse(why, "inner dimensions differ");
  bool vector = a->rank == 1 || b->rank == 1; /* the output lacks a dimension: its last one is not N */
  if (vector && s->n_epilogue) return hn_refuse(why, "a vector operand with an epilogue");
  if (!hn_epilogue_accepts(s, p->isa, true, why)) return false;
  int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0, r = ra > rb ? ra : rb;
  int64_t sa = p->m * p->k, sb = p->k * p->n, b_total = 1;
  p->n_batch_dims = r;
  for (int32_t i = r - 1; i >= 0; i--) {
    int64_t da = i - (r - ra) >= 0 ? a->dim[i - (r - ra)] : 1,
            db = i - (r - rb) >= 0 ? b->dim[i - (r - rb)] : 1;
    if (da != db && da != 1 && db != 1) return hn_refuse(why, "batch dimensions do not broadcast");
    p->batch[i] = da == 1 ? db : da;
    p->a_batch[i] = da == 1 ? 0 : sa;
    p->b_batch[i] = db == 1 ? 0 : sb;
    sa *= da, sb *= db, b_total *= db;
  }
  if (b_total == 1 && p->m > 0) {
    /* One B for all: the rows of all matrices of A are rows of one product. */
    p->m = sa / (p->k ? p->k : 1);
    if (p->k == 0) return hn_refuse(why, "the inner dimension is 0");
    p->n_batch_dims = 0;
  }
  p->packed = b_total == 1 && s->input[1].constant != NULL;
  hn_matmul_step_plan(d, m, false);
  return true;
}
