/* TfIdfVectorizer of numbers; strings are the host's. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/irregular/tf_idf_args.h"
#include "backends/cuda/step/direct.h"
#include "base/error.h"

typedef struct pool {
  const int64_t *token, *count, *index;
  const float *weight;
  size_t tokens, sizes, indices, weights, grams;
} pool;

/* The operator's inference has checked that the lists fit. */
static void read_pool(const hone_node *node, pool *p) {
  p->token = hone_node_ints(node, "pool_int64s", &p->tokens);
  p->count = hone_node_ints(node, "ngram_counts", &p->sizes);
  p->index = hone_node_ints(node, "ngram_indexes", &p->indices);
  p->weight = hone_node_floats(node, "weights", &p->weights);
  p->grams = 0;
  for (size_t i = 0; i < p->sizes; i++) {
    const int64_t to = i + 1 < p->sizes ? p->count[i + 1] : (int64_t)p->tokens;
    p->grams += (size_t)(to - p->count[i]) / (i + 1);
  }
}

static void list_grams(const hone_node *node, const pool *p, hn_gram *to) {
  const bool plain = !strcmp(hone_node_string(node, "mode", ""), "TF");
  size_t g = 0;
  for (size_t i = 0; i < p->sizes; i++) {
    const int64_t end = i + 1 < p->sizes ? p->count[i + 1] : (int64_t)p->tokens;
    for (int64_t at = p->count[i]; at < end; at += (int64_t)i + 1, g++)
      to[g] = (hn_gram){.at = at,
                        .length = (i32)i + 1,
                        .output = (i32)p->index[g],
                        .weight = plain || !p->weight ? 1 : p->weight[g]};
  }
}

typedef struct named {
  const int64_t *token;
  i32 length, output;
} named;

static int by_tokens(const void *a, const void *b) {
  const named *x = a, *y = b;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  for (i32 k = 0; k < x->length; k++)
    if (x->token[k] != y->token[k]) return x->token[k] < y->token[k] ? -1 : 1;
  return 0;
}
static int by_output(const void *a, const void *b) {
  const named *x = a, *y = b;
  return (x->output > y->output) - (x->output < y->output);
}

/* Threads of equal n-grams would count twice, those of equal columns would overwrite each other. */
static bool all_differ(const hone_node *node, const pool *p) {
  hn_gram *gram = calloc(p->grams + 1, sizeof *gram);
  named *list = calloc(p->grams + 1, sizeof *list);
  bool differ = gram && list;
  if (differ) {
    list_grams(node, p, gram);
    for (size_t g = 0; g < p->grams; g++)
      list[g] = (named){p->token + gram[g].at, gram[g].length, gram[g].output};
    qsort(list, p->grams, sizeof *list, by_tokens);
    for (size_t g = 1; g < p->grams; g++) differ = differ && by_tokens(&list[g - 1], &list[g]) != 0;
    qsort(list, p->grams, sizeof *list, by_output);
    for (size_t g = 1; g < p->grams; g++) differ = differ && list[g - 1].output != list[g].output;
  }
  free(gram), free(list);
  return differ;
}

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  pool list;
  read_pool(s->node, &list);
  if (!list.tokens || hone_dtype_is_float(x->dtype)) return hn_refuse(why, "tokens are no numbers");
  if (!all_differ(s->node, &list)) return hn_refuse(why, "n-grams or columns occur twice");
  const int64_t rows = x->rank == 2 ? x->dim[0] : 1;
  p->text = "tf_idf", p->zeroed = 1;
  p->blob = list.grams * sizeof(hn_gram) + list.tokens * sizeof(int64_t);
  p->args.p[0] = (i64)list.grams, p->args.p[1] = x->dim[x->rank - 1], p->args.p[2] = y->dim[y->rank - 1];
  p->args.p[3] = hone_node_int(s->node, "max_skip_count", 0);
  p->args.p[4] = hone_node_int(s->node, "min_gram_length", 1);
  p->args.p[5] = hone_node_int(s->node, "max_gram_length", 1);
  p->args.p[6] = !strcmp(hone_node_string(s->node, "mode", ""), "IDF");
  hn_cuda_direct_add(p, "hn_tf_idf", rows * (int64_t)list.grams, 0);
  return true;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  pool list;
  (void)m, (void)error;
  read_pool(s->node, &list);
  list_grams(s->node, &list, blob);
  memcpy((hn_gram *)blob + list.grams, list.token, list.tokens * sizeof *list.token);
  return HONE_OK;
}

HN_CUDA_DIRECT_PACKED(tf_idf_vectorizer, "TfIdfVectorizer", plan, prepack);
