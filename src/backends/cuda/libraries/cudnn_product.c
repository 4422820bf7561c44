/* MatMul and Gemm as a graph of cuDNN, with epilogues that cuBLASLt does not have. */
#include <string.h>

#include "backends/cuda/libraries/cudnn_step.h"
#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/libraries/lt_step.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"

static hn_cudnn_tensor matrix(const hn_lt_matrix *x, hone_dtype dtype, int64_t batches, int64_t rows,
                              int64_t columns) {
  hn_cudnn_tensor t = {.dtype = dtype};
  const bool shared = x->batch == 0; /* one matrix for all */
  t.dim[0] = shared ? 1 : batches, t.dim[1] = rows, t.dim[2] = columns;
  t.stride[0] = shared ? x->row * (x->turned ? columns : rows) : x->batch;
  t.stride[1] = x->turned ? 1 : x->row;
  t.stride[2] = x->turned ? x->row : 1;
  for (int i = 3; i < HN_CUDNN_RANK; i++) t.dim[i] = t.stride[i] = 1;
  return t;
}

static void place(hn_cudnn_step *c, int32_t tensor, const hn_lt_source *from) {
  hn_cudnn_put(c, tensor, from->in_blob ? HN_CUDNN_BLOB : HN_CUDNN_IN, from->input);
}

/* alpha and Gemm's own C, before the step's list. */
static int32_t add_anchor(hn_cudnn_step *c, const hone_step *s, const hn_lt_step *l) {
  int32_t at = HN_CUDNN_RESULT;
  if (l->spec.alpha != 1)
    at = hn_cudnn_add_op(&c->spec, HN_CUDNN_MUL, at, hn_cudnn_add_value(&c->spec, l->spec.alpha), 0, 0);
  if (l->bias.there) at = hn_cudnn_plus(c, at, hn_cudnn_add_vector(c, l->bias.input, HONE_DTYPE_F32));
  if (l->c.there) at = hn_cudnn_plus(c, at, hn_cudnn_add_like_output(c, s, l->c.input));
  return at;
}

static bool product_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  hn_lt_step l;
  memset(c, 0, sizeof *c);
  if (!hn_lt_product_of(s, &l, why)) return false;
  if (!s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (l.bias.there && (!l.bias.in_blob || l.bias_scale != 1))
    return hn_refuse(why, "the bias is not constant, or scaled");
  if (l.c.there && l.spec.beta != 1) return hn_refuse(why, "beta is not 1");
  const hn_lt_spec *p = &l.spec;
  c->spec = (hn_cudnn_spec){.matmul = true, .rank = 3, .math = p->math, .workspace = hn_library_workspace(s)};
  const hn_cudnn_tensor first[] = {matrix(&p->a, p->dtype, p->batches, p->m, p->k),
                                   matrix(&p->b, p->dtype, p->batches, p->k, p->n),
                                   matrix(&p->d, p->dtype, p->batches, p->m, p->n)};
  const hn_lt_matrix row = {.row = p->n};
  for (int i = 0; i < 3; i++) hn_cudnn_add_tensor(&c->spec, &first[i]);
  c->channels = l.columns;
  c->vector = matrix(&row, p->dtype, 1, 1, p->n);
  place(c, HN_CUDNN_X, &l.a);
  place(c, HN_CUDNN_W, &l.b);
  hn_cudnn_put(c, HN_CUDNN_Y, HN_CUDNN_OUT, 0);
  if (!hn_cudnn_epilogue_fits(s, false, why)) return false;
  return hn_cudnn_add_epilogue(c, s, add_anchor(c, s, &l), why);
}

static void pack(const hone_step *s, const hn_cudnn_step *c, void *to) {
  hn_lt_step l;
  (void)c;
  if (hn_lt_product_of(s, &l, NULL)) hn_lt_pack_weights(s, &l, to); /* it was described before */
}

static double seconds(const hone_step *s, const hone_machine *m, uint32_t candidate) {
  (void)candidate;
  hn_lt_step l;
  if (!hn_lt_product_of(s, &l, NULL)) return HN_REFUSED_SECONDS;
  const double bytes = hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s);
  return hn_library_seconds(m, l.spec.dtype, l.spec.math, (double)l.spec.m * (double)l.spec.batches,
                            (double)l.spec.n, (double)l.spec.k, bytes, 0.5) *
             1.12 +
         hn_library_functions(s, m);
}

const hn_cudnn_kind hn_cudnn_product_fused = {product_of, pack, seconds};
