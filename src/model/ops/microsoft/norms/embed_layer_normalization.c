/* EmbedLayerNormalization: LayerNormalization of the sum of a word's, its place's and its segment's vector.
 * mask_index counts the words of each input that the mask keeps. */
#include "model/ops/microsoft/norms/embed.h"
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/normalize/moments.h"

enum { WORDS, SEGMENTS, WORD_TABLE, PLACE_TABLE, SEGMENT_TABLE, GAMMA, BETA, MASK, PLACES };
enum { Y, MASK_INDEX, SUM };

/* Optional inputs stand among required ones, so the least number of inputs does not say which those are. */
static hone_status check_there(const hone_infer *io, hone_error *error) {
  static const uint32_t required[] = {WORDS, WORD_TABLE, PLACE_TABLE, GAMMA, BETA};
  for (size_t i = 0; i < sizeof required / sizeof *required; i++)
    if (!hn_has_input(io, required[i]))
      return hn_op_bad(io->node, error, "input %u is left out", required[i]);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_status missing = check_there(io, error);
  if (missing) return missing;
  const hone_tensor_desc *ids = io->input[WORDS], *table = io->input[WORD_TABLE];
  const int64_t hidden = hn_dim(table, 1);
  hone_status s = hn_infer_dtype_in(io, WORD_TABLE, HN_TYPES_FLOAT, error);
  if ((ids->rank >= 0 && ids->rank != 2) || (table->rank >= 0 && table->rank != 2))
    return hn_op_bad(io->node, error, "words and their table have ranks %d and %d, expected 2",
                     (int)ids->rank, (int)table->rank);
  if (hn_has_input(io, SEGMENTS) != hn_has_input(io, SEGMENT_TABLE))
    return hn_op_bad(io->node, error, "segments and their table must be given together");
  const int64_t tokens[2] = {hn_dim(ids, 0), hn_dim(ids, 1)};
  if (!s) s = hn_infer_dims(io, SEGMENTS, "segment_ids", 2, tokens, error);
  if (!s) s = hn_infer_dims(io, MASK, "the mask", 2, tokens, error);
  for (uint32_t i = PLACE_TABLE; i <= BETA && !s; i++) s = hn_infer_same_dtype(io, WORD_TABLE, i, error);
  for (uint32_t i = GAMMA; i <= BETA && !s; i++) s = hn_infer_vector(io, i, hidden, error);
  for (uint32_t i = PLACE_TABLE; i <= SEGMENT_TABLE && !s; i++)
    if (hn_has_input(io, i) && io->input[i]->rank >= 0 &&
        (io->input[i]->rank != 2 || hn_dims_differ(io->input[i]->dim[1], hidden)))
      s = hn_op_bad(io->node, error, "table %u has not %lld columns", i, (long long)hidden);
  if (s) return s;
  const int64_t dims[3] = {hn_dim(ids, 0), hn_dim(ids, 1), hidden};
  hn_infer_set(io, Y, table->dtype, 3, dims);
  hn_infer_set(io, MASK_INDEX, HONE_DTYPE_I32, 1, dims);
  hn_infer_set(io, SUM, table->dtype, 3, dims);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 10 * hn_known_count(io->output[Y]));
}

/* Adds row `id` of a table to the sum. */
static hone_status add_row(hone_call *call, uint32_t table, int64_t id, double *one, double *sum, int64_t n,
                           hone_error *error) {
  const hone_tensor *t = call->input[table];
  if (id < 0 || id >= t->desc.dim[0])
    return hn_op_bad(call->node, error, "number %lld is not in table %u of %lld rows", (long long)id, table,
                     (long long)t->desc.dim[0]);
  hn_load_f64(one, t, id * n, n);
  for (int64_t i = 0; i < n; i++) sum[i] += one[i];
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *ids = call->input[WORDS];
  const int64_t words = ids->desc.dim[1], n = call->input[WORD_TABLE]->desc.dim[1];
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-12f);
  const double *gamma = hn_all_f64(call, call->input[GAMMA], error),
               *beta = gamma ? hn_all_f64(call, call->input[BETA], error) : NULL;
  double *one = beta ? hn_scratch(call, n, sizeof *one, error) : NULL,
         *sum = one ? hn_scratch(call, n, sizeof *sum, error) : NULL;
  if (!sum) return HONE_ERROR_MEMORY;
  const int64_t places = hn_call_has(call, PLACES) ? hn_count(call->input[PLACES]) : 0;
  for (int64_t t = 0; t < hn_count(ids); t++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    const int64_t place = places ? hn_get_i64(call->input[PLACES], t % places) : t % words;
    memset(sum, 0, (size_t)n * sizeof *sum);
    hone_status s = add_row(call, WORD_TABLE, hn_get_i64(ids, t), one, sum, n, error);
    if (!s) s = add_row(call, PLACE_TABLE, place, one, sum, n, error);
    if (!s && hn_call_has(call, SEGMENTS))
      s = add_row(call, SEGMENT_TABLE, hn_get_i64(call->input[SEGMENTS], t), one, sum, n, error);
    if (s) return s;
    if (call->n_outputs > SUM && call->output[SUM]) hn_store_f64(call->output[SUM], t * n, sum, n);
    const double mean = hn_mean(sum, n, HONE_DTYPE_F32),
                 inverse = 1 / sqrt(hn_variance(sum, n, mean, HONE_DTYPE_F32) + epsilon);
    for (int64_t i = 0; i < n; i++) sum[i] = (sum[i] - mean) * inverse * gamma[i] + beta[i];
    if (call->output[Y]) hn_store_f64(call->output[Y], t * n, sum, n);
  }
  hn_count_mask(call, MASK, MASK_INDEX, ids->desc.dim[0], words);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "epsilon", .type = HONE_ATTR_FLOAT}, {.name = "mask_index_type", .type = HONE_ATTR_INT}, {0}};

HN_OP(embed_layer_normalization) = {HONE_DESC_HEAD(hone_op_desc),
                                    .domain = "com.microsoft",
                                    .op_type = "EmbedLayerNormalization",
                                    .since = 1,
                                    HN_INPUTS(1, 9),
                                    HN_OUTPUTS(1, 3),
                                    .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
                                    .attrs = attrs,
                                    .infer = infer,
                                    .cost = cost,
                                    .reference = reference};
