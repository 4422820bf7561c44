/* Gemm: alpha A' B' + beta C, where A' and B' may be transposed and C broadcasts to the product. */
#include "model/ops/common/bulk.h"
#include "model/ops/product/matrix.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  bool ta = hone_node_int(io->node, "transA", 0) != 0, tb = hone_node_int(io->node, "transB", 0) != 0;
  hone_tensor_desc y = {.dtype = a->dtype, .rank = 2, .dim = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN}};
  if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
    return hn_op_bad(io->node, error, "A has rank %d and B rank %d, both must be 2", a->rank, b->rank);
  for (uint32_t i = 1; i < io->n_inputs; i++)
    if (io->input[i] && a->dtype && io->input[i]->dtype && io->input[i]->dtype != a->dtype)
      return hn_op_bad(io->node, error, "input %u is %s, A is %s", i, hone_dtype_name(io->input[i]->dtype),
                       hone_dtype_name(a->dtype));
  if (a->rank == 2) y.dim[0] = a->dim[ta];
  if (b->rank == 2) y.dim[1] = b->dim[!tb];
  int64_t ka = a->rank == 2 ? a->dim[!ta] : -1, kb = b->rank == 2 ? b->dim[tb] : -1;
  if (ka >= 0 && kb >= 0 && ka != kb)
    return hn_op_bad(io->node, error, "A has %lld in its inner dimension, B %lld", (long long)ka,
                     (long long)kb);
  if (hn_has_input(io, 2) && io->input[2]->rank >= 0) {
    const hone_tensor_desc *c = io->input[2];
    bool fits = c->rank <= 2;
    for (int32_t i = 0; fits && i < c->rank; i++) {
      int64_t have = c->dim[i], want = y.dim[i + 2 - c->rank];
      fits = have == 1 || have < 0 || want < 0 || have == want;
    }
    if (!fits) {
      char text[96];
      return hn_op_bad(io->node, error, "C, %s, does not broadcast to the product",
                       hone_desc_format(c, text, sizeof text));
    }
  }
  hn_infer_set(io, 0, y.dtype, 2, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  *c = (hone_cost){.bytes = -1};
  int64_t n = hone_desc_count(io->output[0]);
  if (n < 0 || !hone_desc_known(io->input[0])) return;
  int64_t k = io->input[0]->dim[hone_node_int(io->node, "transA", 0) ? 0 : 1];
  c->macs = (double)n * (double)k;
  c->flops = 2 * c->macs + (hn_has_input(io, 2) ? (double)n : 0);
}

/* y = alpha y + beta c, with c's steps along rows and columns. */
static void add_c(hone_tensor *y, const hone_tensor *c, int64_t row, int64_t col, double alpha, double beta) {
  int64_t m = y->desc.dim[0], n = y->desc.dim[1];
  hone_dtype t = y->desc.dtype;
  if (t == HONE_DTYPE_F32) {
    const float fa = (float)alpha, fb = (float)beta, *from = c ? c->data : NULL;
    float *to = y->data;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        to[i * n + j] = from ? fa * to[i * n + j] + fb * from[i * row + j * col] : fa * to[i * n + j];
    return;
  }
  bool whole = !hone_dtype_is_float(t) && alpha == 1 && beta == 1; /* integers stay exact */
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = i * n + j, from = i * row + j * col;
      if (whole)
        hn_set_i64(y, at, (int64_t)((uint64_t)hn_get_i64(y, at) + (c ? (uint64_t)hn_get_i64(c, from) : 0)));
      else
        hn_set_f64(y, at, alpha * hn_get_f64(y, at) + (c ? beta * hn_get_f64(c, from) : 0));
    }
}

/* A 16-bit float tensor widened, so that the product is rounded once, after C was added. */
static hone_status widen(hone_call *call, const hone_tensor **t, hone_tensor *wide, hone_error *error) {
  *wide = (hone_tensor){hone_desc(HONE_DTYPE_F32, (*t)->desc.rank, (*t)->desc.dim),
                        (void *)hn_all_f32(call, *t, error)};
  *t = wide;
  return wide->data ? HONE_OK : HONE_ERROR_MEMORY;
}

static hone_status product(hone_call *call, const hone_tensor *a, const hone_tensor *b, const hone_tensor *c,
                           hone_tensor *y, hone_error *error) {
  bool ta = hone_node_int(call->node, "transA", 0) != 0, tb = hone_node_int(call->node, "transB", 0) != 0;
  double alpha = hone_node_float(call->node, "alpha", 1), beta = hone_node_float(call->node, "beta", 1);
  int64_t k = a->desc.dim[!ta], la = a->desc.dim[1], lb = b->desc.dim[1];
  hone_status status = hn_matmul(call, y->desc.dtype, y->desc.dim[0], y->desc.dim[1], k,
                                 (hn_matrix){a->data, ta ? 1 : la, ta ? la : 1},
                                 (hn_matrix){b->data, tb ? 1 : lb, tb ? lb : 1}, y->data, error);
  if (status) return status;
  int64_t row = 0, col = 0;
  if (c && c->desc.rank > 0 && c->desc.dim[c->desc.rank - 1] != 1) col = 1;
  if (c && c->desc.rank == 2 && c->desc.dim[0] != 1) row = c->desc.dim[1];
  if (c || alpha != 1) add_c(y, c, row, col, alpha, beta);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[0], *b = call->input[1],
                    *c = hn_call_has(call, 2) ? call->input[2] : NULL;
  hone_tensor *y = call->output[0], wide[4];
  hone_dtype t = y->desc.dtype;
  if (t != HONE_DTYPE_F16 && t != HONE_DTYPE_BF16) return product(call, a, b, c, y, error);
  int64_t n = hn_count(y);
  hone_status status = widen(call, &a, &wide[0], error);
  if (!status) status = widen(call, &b, &wide[1], error);
  if (!status && c) status = widen(call, &c, &wide[2], error);
  if (status) return status;
  wide[3] =
      (hone_tensor){hone_desc(HONE_DTYPE_F32, 2, y->desc.dim), hn_scratch(call, n, sizeof(float), error)};
  if (!wide[3].data) return HONE_ERROR_MEMORY;
  status = product(call, a, b, c, &wide[3], error);
  if (!status) hn_write_f32(y->data, t, 0, wide[3].data, n);
  return status;
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "beta", .type = HONE_ATTR_FLOAT},
                                       {.name = "transA", .type = HONE_ATTR_INT},
                                       {.name = "transB", .type = HONE_ATTR_INT},
                                       {.name = "broadcast", .type = HONE_ATTR_INT, .until = 6},
                                       {0}};

HN_OP(gemm) = {HN_OP_HEAD,
               .op_type = "Gemm",
               .since = 1,
               HN_INPUTS(2, 3),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) |
                        HONE_TYPES(HONE_DTYPE_U32) | HONE_TYPES(HONE_DTYPE_U64),
               .attrs = attrs,
               .infer = infer,
               .cost = cost,
               .reference = reference,
               .product = HONE_PRODUCT_GEMM,
               .codes = HONE_CODES_WEIGHTS,
               .on_codes = "QLinearGemm"};
