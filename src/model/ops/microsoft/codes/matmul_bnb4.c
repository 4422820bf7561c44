/* MatMulBnb4: A times a matrix whose values are codes of 4 bits, by a table of 16 numbers, times the largest
 * magnitude of their block. */
#include "model/ops/microsoft/codes/bnb4.h"

#include "model/ops/common/convert.h"

enum { A, B, SCALES };

hone_status hn_bnb4_of(const hone_node *node, hn_bnb4 *out, hone_error *error) {
  /* 4-bit floats of one sign, two exponent bits and one bit behind them, over their largest, 12; and the 16
   * quantiles of a normal distribution within [-1, 1]. */
  static const float fp4[16] = {
      0,     5.208333333e-03f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      -0.0f, -5.208333333e-03f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  static const float nf4[16] = {-1,
                                -0.6961928009986877f,
                                -0.5250730514526367f,
                                -0.39491748809814453f,
                                -0.28444138169288635f,
                                -0.18477343022823334f,
                                -0.09105003625154495f,
                                0,
                                0.07958029955625534f,
                                0.16093020141124725f,
                                0.24611230194568634f,
                                0.33791524171829224f,
                                0.44070982933044434f,
                                0.5626170039176941f,
                                0.7229568362236023f,
                                1};
  const int64_t type = hone_node_int(node, "quant_type", 1);
  *out = (hn_bnb4){.rows = hone_node_int(node, "N", 0),
                   .columns = hone_node_int(node, "K", 0),
                   .block = hone_node_int(node, "block_size", 0),
                   .turned = hone_node_int(node, "transB", 1) != 0,
                   .value = type == 0 ? fp4 : nf4};
  if (type != 0 && type != 1) return hn_op_bad(node, error, "quant_type is %lld", (long long)type);
  if (out->rows < 1 || out->columns < 1 || out->rows > INT64_MAX / 8 / out->columns || out->block < 16 ||
      (out->block & (out->block - 1)))
    return hn_op_bad(node, error, "K is %lld, N %lld, block_size %lld", (long long)out->columns,
                     (long long)out->rows, (long long)out->block);
  return HONE_OK;
}

void hn_bnb4_row(const hn_bnb4 *w, const hone_tensor *codes, const hone_tensor *scales, int64_t row,
                 float *out) {
  const uint8_t *from = codes->data;
  for (int64_t i = 0, at = row * w->columns; i < w->columns; i++, at++)
    out[i] = w->value[from[at / 2] >> (at % 2 ? 0 : 4) & 15] * (float)hn_get_f64(scales, at / w->block);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A];
  hn_bnb4 w;
  hone_status s = hn_bnb4_of(io->node, &w, error);
  if (!s) s = hn_infer_dtype_in(io, B, HONE_TYPES(HONE_DTYPE_U8), error);
  if (!s) s = hn_infer_same_dtype(io, A, SCALES, error);
  if (!s) s = hn_infer_vector(io, SCALES, (w.rows * w.columns + w.block - 1) / w.block, error);
  if (s) return s;
  const int64_t bytes = hone_desc_count(io->input[B]), k = w.turned ? w.columns : w.rows,
                n = w.turned ? w.rows : w.columns;
  if (hn_dims_differ(bytes, (w.rows * w.columns + 1) / 2))
    return hn_op_bad(io->node, error, "the codes are %lld bytes, expected %lld", (long long)bytes,
                     (long long)((w.rows * w.columns + 1) / 2));
  if (a->rank == 0) return hn_op_bad(io->node, error, "A has rank 0");
  if (a->rank > 0 && hn_dims_differ(a->dim[a->rank - 1], k))
    return hn_op_bad(io->node, error, "A has %lld values a row, the matrix %lld",
                     (long long)a->dim[a->rank - 1], (long long)k);
  int64_t dims[HONE_MAX_RANK];
  for (int32_t i = 0; i < a->rank; i++) dims[i] = i == a->rank - 1 ? n : a->dim[i];
  hn_infer_set(io, 0, a->dtype, a->rank, dims);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *a = io->input[A];
  const int64_t k = a->rank > 0 ? a->dim[a->rank - 1] : 0;
  hn_cost_macs(cost, k > 0 ? hn_known_count(io->output[0]) * (double)k : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_bnb4 w;
  hone_status s = hn_bnb4_of(call->node, &w, error);
  if (s) return s;
  const int64_t k = w.turned ? w.columns : w.rows, n = w.turned ? w.rows : w.columns,
                m = hn_count(call->input[A]) / k;
  const float *a = hn_all_f32(call, call->input[A], error);
  float *row = a ? hn_scratch(call, w.columns, sizeof *row, error) : NULL;
  double *sum = row ? hn_scratch(call, m * n, sizeof *sum, error) : NULL;
  if (!sum) return HONE_ERROR_MEMORY;
  memset(sum, 0, (size_t)(m * n) * sizeof *sum);
  for (int64_t r = 0; r < w.rows; r++) {
    if ((s = hn_call_check(call, error))) return s;
    hn_bnb4_row(&w, call->input[B], call->input[SCALES], r, row);
    for (int64_t i = 0; i < m; i++)
      for (int64_t c = 0; c < w.columns; c++) {
        if (w.turned)
          sum[i * n + r] += (double)a[i * k + c] * (double)row[c];
        else
          sum[i * n + c] += (double)a[i * k + r] * (double)row[c];
      }
  }
  hn_store_f64(call->output[0], 0, sum, m * n);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "K", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "N", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "block_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "quant_type", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "training_mode", .type = HONE_ATTR_INT},
                                       {.name = "transB", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(matmul_bnb4) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "MatMulBnb4",
                      .since = 1,
                      HN_INPUTS(3, 3),
                      HN_OUTPUTS(1, 1),
                      .types = HN_TYPES_FLOAT,
                      .attrs = attrs,
                      .infer = infer,
                      .cost = cost,
                      .reference = reference};
