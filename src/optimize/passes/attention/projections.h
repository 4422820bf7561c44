/* Products of one value that one attention reads, made one product: what merge_projections does of floats and
 * merge_coded_projections of codes. */
#ifndef HN_PASSES_PROJECTIONS_H
#define HN_PASSES_PROJECTIONS_H

#include "optimize/match/attention.h"
#include "optimize/passes/common/pass.h"

enum { HN_PROJECTIONS = 3 }; /* at most: Q, K, V */

typedef struct hn_projection {
  hn_value *x, *w, *bias, *y; /* y = x W + bias, or its codes; bias: a row, or NULL */
  hone_node *product, *sum;   /* sum: the Add of the bias, or NULL */
  hone_node *weights;         /* what dequantises W, or NULL */
} hn_projection;

typedef struct hn_projection_form {
  bool (*read)(hn_value *operand, const hn_attention_hit *hit, hn_projection *p);
  bool (*alike)(const hn_projection *a, const hn_projection *b); /* beyond x and W's rows; or NULL */
  hn_value *(*make)(hn_pass_context *ctx, const hn_projection *p, uint32_t n, int64_t columns);
  int depth; /* nodes behind each other that nobody reads any more, y's first */
  const char *what;
} hn_projection_form;

/* Visits a Softmax. */
hn_pass_result hn_merge_projections(hn_pass_context *ctx, hone_node *softmax, const hn_projection_form *form);

/* Constants one after the other: `rows` rows of each one's own columns, or one row (0). Where there is one
 * element it stands for all of a row, where there is none (NULL) it is zero. NULL when memory is short. */
hn_value *hn_projections_join(hn_pass_context *ctx, const hn_projection *p, uint32_t n, hn_value *const *from,
                              hone_dtype type, int64_t rows, int64_t columns);

/* Of the products, the one that stands first. */
hone_node *hn_projections_first(const hn_projection *p, uint32_t n);

/* A node like these, whose sources are theirs. NULL when memory is short, which an input of NULL says too. */
hone_node *hn_projections_node(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                               uint32_t n_in, const hone_tensor_desc *like, hone_node *const *from,
                               uint32_t n);

/* y of all: [..., columns] in type. */
hone_tensor_desc hn_projections_desc(const hn_projection *p, hone_dtype type, int64_t columns);

#endif
