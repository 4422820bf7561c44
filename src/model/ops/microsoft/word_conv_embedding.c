/* WordConvEmbedding: a vector for each word of the sequence. Its characters' vectors are convolved by windows
 * over the word, and each filter gives the largest Tanh. Words end at their zeros; shorter ones than the
 * window are as long as it, words without a character give zeros. */
#include "model/ops/microsoft/common/inner.h"

enum { SEQUENCE, W, B, TABLE };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *seq = io->input[SEQUENCE], *w = io->input[W], *table = io->input[TABLE];
  const int64_t filters = hn_dim(w, 0), window = hn_dim(w, 2), size = hn_dim(w, 3);
  hone_status s = hn_infer_dtype_in(io, W, HONE_TYPES(HONE_DTYPE_F32), error);
  for (uint32_t i = B; i <= TABLE && !s; i++) s = hn_infer_same_dtype(io, W, i, error);
  if (!s) s = hn_infer_dims(io, W, "the weights", 4, (const int64_t[]){filters, 1, window, size}, error);
  if (!s) s = hn_infer_vector(io, B, filters, error);
  if (!s) s = hn_infer_dims(io, TABLE, "the table", 2, (const int64_t[]){hn_dim(table, 0), size}, error);
  if (!s && seq->rank >= 0 && seq->rank != 2)
    s = hn_op_bad(io->node, error, "the sequence has rank %d", (int)seq->rank);
  static const char *const names[3] = {"embedding_size", "conv_window_size", "char_embedding_size"};
  const int64_t have[3] = {filters, window, size};
  for (int i = 0; i < 3 && !s; i++) {
    const int64_t said = hone_node_int(io->node, names[i], -1);
    if (said != -1 && hn_dims_differ(said, have[i]))
      s = hn_op_bad(io->node, error, "%s is %lld, the weights have %lld", names[i], (long long)said,
                    (long long)have[i]);
  }
  if (!s && window >= 0 && hn_dim(seq, 1) >= 0 && (window < 1 || window > seq->dim[1]))
    s = hn_op_bad(io->node, error, "a window of %lld over words of %lld", (long long)window,
                  (long long)seq->dim[1]);
  if (!s) hn_infer_set(io, 0, HONE_DTYPE_F32, 2, (const int64_t[]){hn_dim(seq, 0), filters});
  return s;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t chars = hn_dim(io->input[SEQUENCE], 1);
  hn_cost_macs(cost, chars > 0 ? (double)hn_dim(io->input[SEQUENCE], 0) * (double)chars *
                                     hn_known_count(io->input[W])
                               : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *seq = call->input[SEQUENCE], *w = call->input[W], *table = call->input[TABLE];
  const int64_t words = seq->desc.dim[0], chars = seq->desc.dim[1], filters = w->desc.dim[0],
                window = w->desc.dim[2], size = w->desc.dim[3], known = table->desc.dim[0];
  const int32_t *id = seq->data;
  const float *weights = w->data, *bias = call->input[B]->data, *vectors = table->data;
  float *y = call->output[0]->data;
  for (int64_t i = 0; i < words; i++, id += chars, y += filters) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    int64_t length = 0;
    for (int64_t c = 0; c < chars && id[0] > 0; c++) length += id[c] > 0;
    for (int64_t f = 0; f < filters; f++) y[f] = length ? -1e12f : 0;
    const int64_t end = length ? hn_max(length, window) : 0;
    for (int64_t c = 0; c < end; c++)
      if (id[c] < 0 || id[c] >= known)
        return hn_op_bad(call->node, error, "character %d is not in a table of %lld", (int)id[c],
                         (long long)known);
    for (int64_t at = 0; at + window <= end; at++)
      for (int64_t f = 0; f < filters; f++) {
        double sum = (double)bias[f];
        for (int64_t c = 0; c < window; c++)
          for (int64_t k = 0; k < size; k++)
            sum += (double)weights[(f * window + c) * size + k] * (double)vectors[id[at + c] * size + k];
        const float v = (float)tanh(sum);
        y[f] = v > y[f] ? v : y[f];
      }
  }
  (void)error;
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "embedding_size", .type = HONE_ATTR_INT},
                                       {.name = "conv_window_size", .type = HONE_ATTR_INT},
                                       {.name = "char_embedding_size", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(word_conv_embedding) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "WordConvEmbedding",
                              .since = 1,
                              HN_INPUTS(4, 4),
                              HN_OUTPUTS(1, 1),
                              .types = HONE_TYPES(HONE_DTYPE_I32),
                              .attrs = attrs,
                              .infer = infer,
                              .cost = cost,
                              .reference = reference};
