/* RelativePositionBias: what T5 adds to scores, a number for each head and each distance of key and query.
 * Distances share buckets: up to half of them one each, then ever more. The table lies head by head. */
#include "model/ops/microsoft/common/inner.h"

enum { TABLE, QUERIES, KEYS };

static hone_status check(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *table = io->input[TABLE];
  const bool both = hone_node_int(io->node, "is_bidirectional", 0) != 0;
  const int64_t distance = hone_node_int(io->node, "max_distance", 0), buckets = hn_dim(table, 0);
  hone_status s = HONE_OK;
  for (uint32_t i = QUERIES; i <= KEYS && !s; i++) {
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I64), error);
    if (!s && hone_desc_known(io->input[i]) && hone_desc_count(io->input[i]) != 1)
      s = hn_op_bad(io->node, error, "a length is not one number");
  }
  if (s) return s;
  if (table->rank >= 0 && table->rank != 2)
    return hn_op_bad(io->node, error, "the table has rank %d", (int)table->rank);
  const int64_t exact = buckets < 0 ? 1 : buckets / (both ? 4 : 2);
  if (distance < 1 || exact < 1 || distance <= exact)
    return hn_op_bad(io->node, error, "max_distance is %lld, with %lld buckets", (long long)distance,
                     (long long)buckets);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_status s = check(io, error);
  if (s) return s;
  int64_t n[2] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN}, v;
  for (uint32_t i = 0; i < 2; i++)
    if (hn_infer_ints(io, QUERIES + i, &v, 1) == 1) {
      if (v < 1) return hn_op_bad(io->node, error, "a length is %lld", (long long)v);
      n[i] = v;
    }
  hn_infer_set(io, 0, io->input[TABLE]->dtype, 4,
               (const int64_t[]){1, hn_dim(io->input[TABLE], 1), n[0], n[1]});
  return HONE_OK;
}

static int64_t bucket(int64_t apart, int64_t buckets, int64_t distance, bool both) {
  int64_t from = 0;
  if (both)
    buckets /= 2, from = apart > 0 ? buckets : 0, apart = apart < 0 ? -apart : apart;
  else
    apart = apart < 0 ? -apart : 0;
  const int64_t exact = buckets / 2;
  if (apart < exact) return from + apart;
  const float far =
      logf((float)apart / (float)exact) / logf((float)distance / (float)exact) * (float)(buckets - exact);
  return from + hn_min(exact + (int64_t)far, buckets - 1);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *table = call->input[TABLE];
  const int64_t buckets = table->desc.dim[0], heads = table->desc.dim[1],
                queries = hn_get_i64(call->input[QUERIES], 0), keys = hn_get_i64(call->input[KEYS], 0),
                distance = hone_node_int(call->node, "max_distance", 0);
  const bool both = hone_node_int(call->node, "is_bidirectional", 0) != 0;
  if (queries < 1 || keys < 1 || queries > INT32_MAX || keys > INT32_MAX)
    return hn_op_bad(call->node, error, "%lld queries and %lld keys", (long long)queries, (long long)keys);
  const hone_tensor_desc d = hone_desc(table->desc.dtype, 4, (const int64_t[]){1, heads, queries, keys});
  hone_status s = call->output[0]->data ? HONE_OK : call->alloc_output(call, 0, &d, error);
  double *row = s ? NULL : hn_scratch(call, keys, sizeof *row, error);
  const double *from = row ? hn_all_f64(call, table, error) : NULL;
  if (!from) return s ? s : HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < heads * queries; i++) {
    for (int64_t k = 0; k < keys; k++)
      row[k] = from[i / queries * buckets + bucket(k - i % queries, buckets, distance, both)];
    hn_store_f64(call->output[0], i * keys, row, keys);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "max_distance", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "is_bidirectional", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(relative_position_bias) = {HONE_DESC_HEAD(hone_op_desc),
                                 .domain = "com.microsoft",
                                 .op_type = "RelativePositionBias",
                                 .since = 1,
                                 HN_INPUTS(3, 3),
                                 HN_OUTPUTS(1, 1),
                                 .types = HN_TYPES_FLOAT,
                                 .attrs = attrs,
                                 .infer = infer,
                                 .reference = reference,
                                 .host_inputs = 1u << QUERIES | 1u << KEYS};
