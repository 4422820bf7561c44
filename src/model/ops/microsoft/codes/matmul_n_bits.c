/* MatMulNBits: A times a matrix whose columns are stored as codes of few bits, K of them in blocks with a
 * scale and zero point each. g_idx says whose scale and zero point a row has, where that is not its block's:
 * GPTQ with act_order. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/codes/nbits.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

/* g_idx is as long as K, or as K filled up to whole blocks. */
static hone_status check_groups(const hone_infer *io, const hn_nbits *w, hone_error *error) {
  const hone_tensor_desc *g = hn_has_input(io, GROUPS) ? io->input[GROUPS] : NULL;
  if (!g || g->rank < 0) return HONE_OK;
  if (g->rank == 1 && (!hn_dims_differ(g->dim[0], w->rows) || g->dim[0] == w->blocks * w->block))
    return HONE_OK;
  char text[128];
  return hn_op_bad(io->node, error, "g_idx is %s, expected %lld numbers",
                   hone_desc_format(g, text, sizeof text), (long long)w->rows);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A];
  hn_nbits w;
  hone_status s = hn_nbits_of(io->node, &w, error);
  if (!s) s = hn_infer_dtype_in(io, B, HONE_TYPES(HONE_DTYPE_U8), error);
  if (!s) s = hn_infer_same_dtype(io, A, SCALES, error);
  if (!s) s = hn_infer_dtype_in(io, ZEROS, HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_U8), error);
  if (!s) s = hn_infer_dtype_in(io, GROUPS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s) s = check_groups(io, &w, error);
  if (!s) s = hn_infer_vector(io, BIAS, w.columns, error);
  if (!s && a->rank == 0) s = hn_op_bad(io->node, error, "A has rank 0");
  if (!s && a->rank > 0 && hn_dims_differ(a->dim[a->rank - 1], w.rows))
    s = hn_op_bad(io->node, error, "A has %lld values a row, K is %lld", (long long)a->dim[a->rank - 1],
                  (long long)w.rows);
  if (!s)
    s = hn_nbits_check(io->node, &w, io->input[B], io->input[SCALES],
                       hn_has_input(io, ZEROS) ? io->input[ZEROS] : NULL, error);
  if (s) return s;
  int64_t dims[HONE_MAX_RANK];
  for (int32_t i = 0; i < a->rank; i++) dims[i] = i == a->rank - 1 ? w.columns : a->dim[i];
  hn_infer_set(io, 0, a->dtype, a->rank, dims);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_macs(cost, hn_known_count(io->output[0]) * (double)hone_node_int(io->node, "K", 0));
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_nbits w;
  hone_tensor *y = call->output[0];
  hone_status s = hn_nbits_of(call->node, &w, error);
  if (!s && hn_call_has(call, GROUPS)) {
    w.group = call->input[GROUPS]->data;
    if (!hn_nbits_groups_fit(&w, w.group))
      s = hn_op_bad(call->node, error, "g_idx names a block that is not there, of %lld", (long long)w.blocks);
  }
  if (s) return s;
  const int64_t m = w.rows ? hn_count(call->input[A]) / w.rows : 0;
  const float *a = hn_all_f32(call, call->input[A], error);
  float *column = a ? hn_scratch(call, w.rows, sizeof *column, error) : NULL;
  if (!column) return HONE_ERROR_MEMORY;
  for (int64_t n = 0; n < w.columns; n++) {
    if ((s = hn_call_check(call, error))) return s;
    hn_nbits_column(&w, call->input[B], call->input[SCALES],
                    hn_call_has(call, ZEROS) ? call->input[ZEROS] : NULL, n, column);
    const double bias = hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], n) : 0;
    for (int64_t i = 0; i < m; i++) {
      double sum = 0;
      for (int64_t k = 0; k < w.rows; k++) sum += (double)a[i * w.rows + k] * (double)column[k];
      hn_set_f64(y, i * w.columns + n, sum + bias);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "K", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "N", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "bits", .type = HONE_ATTR_INT},
                                       {.name = "block_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "accuracy_level", .type = HONE_ATTR_INT},
                                       {.name = "weight_prepacked", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(matmul_n_bits) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "MatMulNBits",
                        .since = 1,
                        HN_INPUTS(3, 6),
                        HN_OUTPUTS(1, 1),
                        .types = HN_TYPES_FLOAT,
                        .attrs = attrs,
                        .infer = infer,
                        .cost = cost,
                        .reference = reference};
