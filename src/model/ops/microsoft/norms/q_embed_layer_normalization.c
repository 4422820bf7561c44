/* QEmbedLayerNormalization: EmbedLayerNormalization whose tables, gamma and beta are codes of 8 bits. */
#include "model/ops/microsoft/norms/embed.h"
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/normalize/moments.h"

enum { WORDS, SEGMENTS, WORD_TABLE, PLACE_TABLE, SEGMENT_TABLE, GAMMA, BETA, MASK };
enum { SCALES = 8, ZEROS = 13, TABLES = 5 }; /* of inputs WORD_TABLE to BETA, in their order */
enum { Y, MASK_INDEX };

static hone_status check_there(const hone_infer *io, hone_error *error) {
  const bool segments = hn_has_input(io, SEGMENTS);
  for (uint32_t i = 0; i < ZEROS + TABLES; i++) {
    const bool of_segments = i == SEGMENTS || i == SEGMENT_TABLE || i == SCALES + 2 || i == ZEROS + 2;
    if (i != MASK && hn_has_input(io, i) != (of_segments ? segments : true))
      return hn_op_bad(io->node, error, "input %u is %s", i,
                       hn_has_input(io, i) ? "there alone" : "left out");
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status s = check_there(io, error);
  if (s) return s;
  const hone_tensor_desc *ids = io->input[WORDS], *table = io->input[WORD_TABLE];
  const int64_t tokens[2] = {hn_dim(ids, 0), hn_dim(ids, 1)}, hidden = hn_dim(table, 1);
  if (ids->rank >= 0 && ids->rank != 2)
    return hn_op_bad(io->node, error, "the words have rank %d, expected 2", (int)ids->rank);
  s = hn_infer_dtype_in(io, WORD_TABLE, HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8), error);
  if (!s) s = hn_infer_dims(io, SEGMENTS, "segment_ids", 2, tokens, error);
  if (!s) s = hn_infer_dims(io, MASK, "the mask", 2, tokens, error);
  if (!s) s = hn_infer_same_dtype(io, WORDS, SEGMENTS, error);
  if (!s) s = hn_infer_same_dtype(io, WORDS, MASK, error);
  for (uint32_t i = WORD_TABLE; i <= SEGMENT_TABLE && !s; i++)
    if (hn_has_input(io, i))
      s = hn_infer_dims(io, i, "a table", 2, (const int64_t[]){hn_dim(io->input[i], 0), hidden}, error);
  for (uint32_t i = GAMMA; i <= BETA && !s; i++) s = hn_infer_vector(io, i, hidden, error);
  for (uint32_t i = 0; i < TABLES && !s; i++) {
    const uint32_t scale = SCALES + i, zero = ZEROS + i;
    if (!hn_has_input(io, scale)) continue;
    s = hn_infer_same_dtype(io, WORD_TABLE, WORD_TABLE + i, error);
    if (!s) s = hn_infer_dtype_in(io, scale, HONE_TYPES(HONE_DTYPE_F32), error);
    if (!s) s = hn_infer_same_dtype(io, WORD_TABLE, zero, error);
    for (uint32_t k = scale; k <= zero && !s; k += zero - scale)
      if (hone_desc_known(io->input[k]) && hone_desc_count(io->input[k]) != 1)
        s = hn_op_bad(io->node, error, "input %u is not one number", k);
  }
  if (s) return s;
  hn_infer_set(io, Y, HONE_DTYPE_F32, 3, (const int64_t[]){tokens[0], tokens[1], hidden});
  hn_infer_set(io, MASK_INDEX, HONE_DTYPE_I32, 1, tokens);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 13 * hn_known_count(io->output[Y]));
}

/* n numbers of a table from `at` on. */
static void decode(const hone_call *call, uint32_t table, int64_t at, double *out, int64_t n) {
  const uint32_t i = table - WORD_TABLE;
  const double scale = hn_get_f64(call->input[SCALES + i], 0), zero = hn_get_f64(call->input[ZEROS + i], 0);
  hn_load_f64(out, call->input[table], at, n);
  for (int64_t k = 0; k < n; k++) out[k] = (out[k] - zero) * scale;
}

static hone_status add_row(hone_call *call, uint32_t table, int64_t id, double *one, double *sum, int64_t n,
                           hone_error *error) {
  const int64_t rows = call->input[table]->desc.dim[0];
  if (id < 0 || id >= rows)
    return hn_op_bad(call->node, error, "number %lld is not in table %u of %lld rows", (long long)id, table,
                     (long long)rows);
  decode(call, table, id * n, one, n);
  for (int64_t i = 0; i < n; i++) sum[i] += one[i];
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *ids = call->input[WORDS];
  const int64_t words = ids->desc.dim[1], n = call->input[WORD_TABLE]->desc.dim[1];
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-12f);
  double *room = hn_scratch(call, 4 * n, sizeof *room, error);
  if (!room) return HONE_ERROR_MEMORY;
  double *one = room, *sum = room + n, *gamma = room + 2 * n, *beta = room + 3 * n;
  decode(call, GAMMA, 0, gamma, n);
  decode(call, BETA, 0, beta, n);
  for (int64_t t = 0; t < hn_count(ids); t++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    memset(sum, 0, (size_t)n * sizeof *sum);
    hone_status s = add_row(call, WORD_TABLE, hn_get_i64(ids, t), one, sum, n, error);
    if (!s) s = add_row(call, PLACE_TABLE, t % words, one, sum, n, error);
    if (!s && hn_call_has(call, SEGMENTS))
      s = add_row(call, SEGMENT_TABLE, hn_get_i64(call->input[SEGMENTS], t), one, sum, n, error);
    if (s) return s;
    const double mean = hn_mean(sum, n, HONE_DTYPE_F32),
                 inverse = 1 / sqrt(hn_variance(sum, n, mean, HONE_DTYPE_F32) + epsilon);
    for (int64_t i = 0; i < n; i++) sum[i] = (sum[i] - mean) * inverse * gamma[i] + beta[i];
    if (call->output[Y]) hn_store_f64(call->output[Y], t * n, sum, n);
  }
  hn_count_mask(call, MASK, MASK_INDEX, ids->desc.dim[0], words);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "epsilon", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(q_embed_layer_normalization) = {HONE_DESC_HEAD(hone_op_desc),
                                      .domain = "com.microsoft",
                                      .op_type = "QEmbedLayerNormalization",
                                      .since = 1,
                                      .flags = HONE_OP_CODES,
                                      HN_INPUTS(1, 18),
                                      HN_OUTPUTS(1, 2),
                                      .types = HONE_TYPES(HONE_DTYPE_I32),
                                      .attrs = attrs,
                                      .infer = infer,
                                      .cost = cost,
                                      .reference = reference};
