/* TreeEnsembleClassifier: the leaves vote for classes, and the class with most votes is the sample's. Where
 * all leaves vote for one of two classes, votes above 0 (above 1/2 where none is negative) mean the second.
 */
#include "model/ops/classical/tree_lists.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hn_labels labels = hn_labels_of(io->node, "classlabels_int64s");
  hn_transform transform;
  hone_status s = hn_transform_read(io->node, &transform, error);
  if (!s) s = hn_labels_infer(io, &labels, labels.n, error);
  if (!s && labels.n == 1) s = hn_op_refuse(io->node, error, "it has one class label");
  return s;
}

hone_status hn_tree_classifier_form(hone_call *call, int64_t width, hn_tree_form *f, hone_error *error) {
  hn_tree_lists l;
  const int64_t n = hn_labels_of(call->node, "classlabels_int64s").n;
  f->trees.n_targets = n, f->trees.sum = HN_TREE_SUM;
  hone_status s = hn_transform_read(call->node, &f->finish.transform, error);
  if (!s) s = hn_tree_lists_read(call->node, "class", &l, error);
  if (s) return s;
  if ((int64_t)l.base.n > n)
    return hn_op_bad(call->node, error, "%zu base values for %lld classes", l.base.n, (long long)n);
  bool one_voted_for = true;
  f->finish.classes = f->finish.all_positive = true;
  for (size_t i = 0; i < l.n_votes; i++) {
    if (l.vote_target[i] != l.vote_target[0]) one_voted_for = false;
    if (hn_tree_real(&l.weight, (int64_t)i) < 0) f->finish.all_positive = false;
  }
  f->finish.by_one = n == 2 && one_voted_for && l.base.n < 2;
  f->finish.second = l.n_votes && l.vote_target[0] == 1;
  s = hn_tree_lists_build(call, &l, f, error);
  return s ? s : hn_trees_check(call->node, &f->trees, width, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_tree_form_run(call, hn_tree_classifier_form, error);
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
