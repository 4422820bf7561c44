/* NGramRepeatBlock: scores, with -infinity for every token that would repeat an n-gram of the input. */
#include "model/ops/microsoft/common/inner.h"

enum { IDS, SCORES };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *ids = io->input[IDS], *scores = io->input[SCORES];
  const int64_t n = hone_node_int(io->node, "ngram_size", 0);
  if (n < 1) return hn_op_bad(io->node, error, "ngram_size is %lld", (long long)n);
  if ((ids->rank >= 0 && ids->rank != 2) || (scores->rank >= 0 && scores->rank != 2))
    return hn_op_bad(io->node, error, "ids have rank %d and scores rank %d, both must be 2", (int)ids->rank,
                     (int)scores->rank);
  if (hn_dims_differ(hn_dim(ids, 0), hn_dim(scores, 0)))
    return hn_op_bad(io->node, error, "%lld rows of ids, %lld of scores", (long long)hn_dim(ids, 0),
                     (long long)hn_dim(scores, 0));
  const hone_status s = hn_infer_dtype_in(io, SCORES, HN_TYPES_FLOAT, error);
  if (!s) hn_infer_set(io, 0, scores->dtype, scores->rank, scores->dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *ids = call->input[IDS], *scores = call->input[SCORES];
  const int64_t n = hone_node_int(call->node, "ngram_size", 1), length = ids->desc.dim[1],
                words = scores->desc.dim[1];
  const int64_t *all = ids->data;
  hn_copy_elements(call->output[0]->data, scores->data, hn_count(scores), scores->desc.dtype);
  for (int64_t b = 0; b < ids->desc.dim[0]; b++) {
    const int64_t *row = all + b * length, *last = row + length - (n - 1);
    for (int64_t i = 0; i + n <= length; i++) {
      if (n > 1 && memcmp(row + i, last, (size_t)(n - 1) * sizeof *row) != 0) continue;
      const int64_t word = row[i + n - 1];
      if (word < 0 || word >= words)
        return hn_op_bad(call->node, error, "token %lld is not among %lld", (long long)word,
                         (long long)words);
      hn_set_f64(call->output[0], b * words + word, -INFINITY);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "ngram_size", .type = HONE_ATTR_INT, .required = true}, {0}};

HN_OP(n_gram_repeat_block) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "NGramRepeatBlock",
                              .since = 1,
                              HN_INPUTS(2, 2),
                              HN_OUTPUTS(1, 1),
                              .types = HONE_TYPES(HONE_DTYPE_I64),
                              .attrs = attrs,
                              .infer = infer,
                              .reference = reference};
