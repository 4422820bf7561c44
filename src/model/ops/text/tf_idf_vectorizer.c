/* TfIdfVectorizer: how often each n-gram of a pool appears in a sequence of tokens, with up to max_skip_count
 * tokens left out between its members; counts, or weighted. */
#include "model/ops/text/tf_idf_vectorizer.h"

#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

typedef hn_tf_idf_pool pool;

hone_status hn_tf_idf_pool_of(const hone_node *node, hn_tf_idf_pool *p, hone_error *error) {
  size_t n_numbers, n_strings;
  *p = (pool){.min_gram = hone_node_int(node, "min_gram_length", 0),
              .max_gram = hone_node_int(node, "max_gram_length", 0),
              .skips = hone_node_int(node, "max_skip_count", 0)};
  p->number = hone_node_ints(node, "pool_int64s", &n_numbers);
  p->string = hone_node_strings(node, "pool_strings", &n_strings);
  p->count = hone_node_ints(node, "ngram_counts", &p->n_counts);
  p->index = hone_node_ints(node, "ngram_indexes", &p->n_index);
  p->weight = hone_node_floats(node, "weights", &p->n_weights);
  const char *mode = hone_node_string(node, "mode", "");
  if (strcmp(mode, "TF") && strcmp(mode, "IDF") && strcmp(mode, "TFIDF"))
    return hn_op_bad(node, error, "mode is '%s'", mode);
  if (strcmp(mode, "TF") == 0) p->weight = NULL;
  p->once = strcmp(mode, "IDF") == 0;
  if ((n_numbers != 0) == (n_strings != 0)) return hn_op_bad(node, error, "there is not exactly one pool");
  p->size = n_numbers ? n_numbers : n_strings;
  if (p->min_gram < 1 || p->max_gram < p->min_gram || p->skips < 0)
    return hn_op_bad(node, error, "n-gram lengths or skips make no sense");
  size_t grams = 0;
  for (size_t i = 0; i < p->n_counts; i++) { /* sizes 1, 2... lie one after the other */
    int64_t from = p->count[i], to = i + 1 < p->n_counts ? p->count[i + 1] : (int64_t)p->size;
    if (from < 0 || to < from || to > (int64_t)p->size || (size_t)(to - from) % (i + 1))
      return hn_op_bad(node, error, "ngram_counts do not divide the pool");
    grams += (size_t)(to - from) / (i + 1);
  }
  if (p->max_gram > (int64_t)p->n_counts)
    return hn_op_bad(node, error, "ngram_counts has no %lld-grams", (long long)p->max_gram);
  if (grams > p->n_index) return hn_op_bad(node, error, "%zu n-grams have %zu indices", grams, p->n_index);
  if (p->n_weights && p->n_weights < p->n_index) return hn_op_bad(node, error, "there are too few weights");
  for (size_t i = 0; i < p->n_index; i++) {
    if (p->index[i] < 0 || p->index[i] == INT64_MAX)
      return hn_op_bad(node, error, "ngram index %lld", (long long)p->index[i]);
    if (p->index[i] >= p->outputs) p->outputs = p->index[i] + 1;
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  pool p;
  hone_status status = hn_tf_idf_pool_of(io->node, &p, error);
  if (status) return status;
  if (x->dtype && (x->dtype == HONE_DTYPE_STRING) != (p.string != NULL))
    return hn_op_bad(io->node, error, "the input is %s, the pool is not", hone_dtype_name(x->dtype));
  if (x->rank > 2 || x->rank == 0) return hn_op_bad(io->node, error, "the input has rank %d", x->rank);
  int64_t dim[2] = {x->rank == 2 ? x->dim[0] : p.outputs, p.outputs};
  hn_infer_set(io, 0, HONE_DTYPE_F32, x->rank, dim);
  return HONE_OK;
}

static bool same(const pool *p, size_t at, const hone_tensor *x, int64_t i) {
  if (!p->string) return p->number[at] == hn_get_i64(x, i);
  const hone_string *a = &p->string[at], *b = &((const hone_string *)x->data)[i];
  return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

/* Number of the n-gram at start, start + step..., or -1. first is the number of the pool's first n-gram of
 * this size. */
static int64_t find(const pool *p, const hone_tensor *x, int64_t start, int64_t step, int64_t n,
                    int64_t first) {
  int64_t from = p->count[n - 1], to = n < (int64_t)p->n_counts ? p->count[n] : (int64_t)p->size;
  for (int64_t at = from; at < to; at += n) {
    int64_t k = 0;
    while (k < n && same(p, (size_t)(at + k), x, start + k * step)) k++;
    if (k == n) return first + (at - from) / n;
  }
  return -1;
}

static hone_status count_row(hone_call *call, const pool *p, int64_t begin, int64_t length, float *row,
                             hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t first = 0;
  for (int64_t n = 1; n <= p->max_gram; n++) {
    int64_t to = n < (int64_t)p->n_counts ? p->count[n] : (int64_t)p->size,
            grams = (to - p->count[n - 1]) / n;
    /* A single token has no gaps to leave out. */
    for (int64_t skip = 0;
         n >= p->min_gram && skip <= (n == 1 ? 0 : p->skips) && (n - 1) * (skip + 1) < length; skip++)
      for (int64_t start = 0; start + (n - 1) * (skip + 1) < length; start++) {
        hone_status status = hn_call_check(call, error);
        if (status) return status;
        int64_t gram = find(p, x, begin + start, skip + 1, n, first);
        if (gram < 0) continue;
        float *y = &row[p->index[gram]], w = p->weight ? p->weight[gram] : 1;
        *y = p->once ? w : *y + w;
      }
    first += grams;
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *x = &call->input[0]->desc;
  pool p;
  hone_status status = hn_tf_idf_pool_of(call->node, &p, error);
  if (status) return status;
  int64_t rows = x->rank == 2 ? x->dim[0] : 1, length = x->dim[x->rank - 1];
  float *y = call->output[0]->data;
  memset(y, 0, (size_t)hn_count(call->output[0]) * sizeof *y);
  for (int64_t r = 0; r < rows && !status; r++)
    status = count_row(call, &p, r * length, length, y + r * p.outputs, error);
  return status;
}

static const hone_attr_desc attrs[] = {{.name = "mode", .type = HONE_ATTR_STRING, .required = true},
                                       {.name = "min_gram_length", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "max_gram_length", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "max_skip_count", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "ngram_counts", .type = HONE_ATTR_INTS, .required = true},
                                       {.name = "ngram_indexes", .type = HONE_ATTR_INTS, .required = true},
                                       {.name = "pool_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "pool_strings", .type = HONE_ATTR_STRINGS},
                                       {.name = "weights", .type = HONE_ATTR_FLOATS},
                                       {0}};

HN_OP(tf_idf_vectorizer) = {HN_OP_HEAD,
                            .op_type = "TfIdfVectorizer",
                            .since = 9,
                            HN_INPUTS(1, 1),
                            HN_OUTPUTS(1, 1),
                            .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) |
                                     HN_TYPES_STRING,
                            .attrs = attrs,
                            .infer = infer,
                            .reference = reference};
