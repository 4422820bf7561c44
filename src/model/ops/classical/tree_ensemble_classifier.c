/* TreeEnsembleClassifier: the leaves vote for classes, and the class with most votes is the sample's. Where
 * all leaves vote for one of two classes, votes above 0 (above 1/2 where none is negative) mean the second.
 */
#include "model/ops/classical/tree_lists.h"

typedef struct form {
  hn_labels labels;
  hn_tree_lists lists;
  hn_trees trees;
  hn_transform transform;
  bool one_voted_for, all_positive;
} form;

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hn_labels labels = hn_labels_of(io->node, "classlabels_int64s");
  hn_transform transform;
  hone_status s = hn_transform_read(io->node, &transform, error);
  if (!s) s = hn_labels_infer(io, &labels, labels.n, error);
  if (!s && labels.n == 1) s = hn_op_refuse(io->node, error, "it has one class label");
  return s;
}

static hone_status form_of(hone_call *call, form *f, hone_error *error) {
  f->labels = hn_labels_of(call->node, "classlabels_int64s");
  f->trees = (hn_trees){.n_targets = f->labels.n, .sum = HN_TREE_SUM};
  f->one_voted_for = f->all_positive = true;
  hone_status s = hn_transform_read(call->node, &f->transform, error);
  if (!s) s = hn_tree_lists_read(call->node, "class", &f->lists, error);
  if (s) return s;
  if ((int64_t)f->lists.base.n > f->labels.n)
    return hn_op_bad(call->node, error, "%zu base values for %lld classes", f->lists.base.n,
                     (long long)f->labels.n);
  for (size_t i = 0; i < f->lists.n_votes; i++) {
    if (f->lists.vote_target[i] != f->lists.vote_target[0]) f->one_voted_for = false;
    if (hn_tree_real(&f->lists.weight, (int64_t)i) < 0) f->all_positive = false;
  }
  s = hn_tree_lists_build(call, &f->lists, &f->trees, error);
  return s ? s : hn_trees_check(call->node, &f->trees, hn_features_width(&call->input[0]->desc), error);
}

static int64_t most_votes(const double *score, const bool *voted, int64_t n) {
  int64_t most = -1;
  for (int64_t i = 0; i < n; i++)
    if (voted[i] && (most < 0 || score[i] > score[most])) most = i;
  return most < 0 ? 0 : most;
}

static int64_t choose(const form *f, double *score, bool *voted) {
  const hn_tree_reals *base = &f->lists.base;
  for (int64_t i = 0; i < (int64_t)base->n; i++) score[i] += hn_tree_real(base, i), voted[i] = true;
  const int64_t label = most_votes(score, voted, f->labels.n);
  hn_transform_row(f->transform, score, f->labels.n);
  return label;
}

/* Of two classes, of which leaves vote for one. Votes for the first are those for the second, as ONNX Runtime
 * has it: that is how converters write the margin of a binary model. */
static int64_t choose_by_one(const form *f, double *score) {
  const hn_tree_reals *base = &f->lists.base;
  const bool second = f->lists.n_votes && f->lists.vote_target[0] == 1;
  const double votes = score[second] + (base->n ? hn_tree_real(base, 0) : 0);
  if (second) {
    score[0] = 0, score[1] = votes;
    hn_transform_row(f->transform, score, 2);
  } else {
    hn_transform_pair(f->transform, f->all_positive, votes, score);
  }
  return votes > (f->all_positive ? 0.5 : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t rows = hn_features_rows(&x->desc), width = hn_features_width(&x->desc);
  form f;
  hone_status s = form_of(call, &f, error);
  if (s) return s;
  const int64_t n = f.labels.n;
  const bool by_one = n == 2 && f.one_voted_for && f.lists.base.n < 2;
  double *sample = hn_scratch(call, width, sizeof *sample, error);
  double *score = hn_scratch(call, n, sizeof *score, error);
  bool *voted = hn_scratch(call, n, sizeof *voted, error);
  if (!sample || !score || !voted) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(sample, x, r * width, width);
    if ((s = hn_trees_score(call->node, &f.trees, sample, score, voted, error))) return s;
    const int64_t label = by_one ? choose_by_one(&f, score) : choose(&f, score, voted);
    if (call->output[0]) hn_labels_put(&f.labels, call->output[0], r, label);
    if (call->n_outputs > 1 && call->output[1]) hn_store_f64(call->output[1], r * n, score, n);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "base_values", .type = HONE_ATTR_FLOATS},
    {.name = "base_values_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "class_ids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "class_nodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "class_treeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "class_weights", .type = HONE_ATTR_FLOATS},
    {.name = "class_weights_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "classlabels_int64s", .type = HONE_ATTR_INTS},
    {.name = "classlabels_strings", .type = HONE_ATTR_STRINGS},
    HN_TREE_NODE_ATTRS,
    {.name = "post_transform", .type = HONE_ATTR_STRING},
    {0}};

HN_OP(tree_ensemble_classifier) = {HN_FEATURES_OP("TreeEnsembleClassifier", 1, 2), .attrs = attrs,
                                   .infer = infer, .reference = reference};
