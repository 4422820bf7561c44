/* CDist: the distance, or its square, of each row of A from each row of B. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/inner.h"

enum { A, B };

static hone_status squared(const hone_node *node, bool *out, hone_error *error) {
  const char *metric = hone_node_string(node, "metric", "sqeuclidean");
  *out = strcmp(metric, "sqeuclidean") == 0;
  return *out || strcmp(metric, "euclidean") == 0 ? HONE_OK
                                                  : hn_op_refuse(node, error, "the metric '%s'", metric);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A], *b = io->input[B];
  bool square;
  hone_status s = squared(io->node, &square, error);
  if (!s) s = hn_infer_same_dtype(io, A, B, error);
  if (!s && ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2)))
    s = hn_op_bad(io->node, error, "A has rank %d and B rank %d, both must be 2", (int)a->rank, (int)b->rank);
  if (!s && hn_dims_differ(hn_dim(a, 1), hn_dim(b, 1)))
    s = hn_op_bad(io->node, error, "A has %lld columns, B %lld", (long long)hn_dim(a, 1),
                  (long long)hn_dim(b, 1));
  if (!s) hn_infer_set(io, 0, a->dtype, 2, (const int64_t[]){hn_dim(a, 0), hn_dim(b, 0)});
  return s;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t n = hn_dim(io->input[A], 1);
  hn_cost_flops(cost, n > 0 ? 3 * (double)n * hn_known_count(io->output[0]) : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const int64_t m = call->input[A]->desc.dim[0], k = call->input[B]->desc.dim[0],
                n = call->input[A]->desc.dim[1];
  bool square;
  hone_status s = squared(call->node, &square, error);
  if (s) return s;
  const double *a = hn_all_f64(call, call->input[A], error),
               *b = a ? hn_all_f64(call, call->input[B], error) : NULL;
  double *row = b ? hn_scratch(call, k, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < m; i++) {
    if ((s = hn_call_check(call, error))) return s;
    for (int64_t j = 0; j < k; j++) {
      double sum = 0;
      for (int64_t c = 0; c < n; c++) {
        const double d = a[i * n + c] - b[j * n + c];
        sum += d * d;
      }
      row[j] = square ? sum : sqrt(sum);
    }
    hn_store_f64(call->output[0], i * k, row, k);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "metric", .type = HONE_ATTR_STRING}, {0}};

HN_OP(c_dist) = {HONE_DESC_HEAD(hone_op_desc),
                 .domain = "com.microsoft",
                 .op_type = "CDist",
                 .since = 1,
                 HN_INPUTS(2, 2),
                 HN_OUTPUTS(1, 1),
                 .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64),
                 .attrs = attrs,
                 .infer = infer,
                 .cost = cost,
                 .reference = reference};
