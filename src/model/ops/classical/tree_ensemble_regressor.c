/* TreeEnsembleRegressor: the votes of the leaves are added up, averaged, or the least or greatest is taken.
 */
#include "model/ops/classical/tree_lists.h"

static const char *const sums[] = {"AVERAGE", "SUM", "MIN", "MAX"};

static bool sum_of(const hone_node *node, hn_tree_sum *out) {
  const char *said = hone_node_string(node, "aggregate_function", "SUM");
  for (int i = 0; i < 4; i++)
    if (strcmp(said, sums[i]) == 0) return *out = (hn_tree_sum)i, true;
  return false;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const int64_t targets = hone_node_int(io->node, "n_targets", 1);
  hn_transform transform;
  hn_tree_sum sum;
  hone_status s = hn_features_rank(io, error);
  if (!s) s = hn_transform_read(io->node, &transform, error);
  if (s) return s;
  if (targets < 1) return hn_op_bad(io->node, error, "n_targets is %lld", (long long)targets);
  if (!sum_of(io->node, &sum))
    return hn_op_bad(io->node, error, "aggregate_function is '%.40s'; expected SUM, AVERAGE, MIN or MAX",
                     hone_node_string(io->node, "aggregate_function", ""));
  hn_infer_set(io, 0, HONE_DTYPE_F32, 2, (int64_t[]){hn_features_rows(io->input[0]), targets});
  return HONE_OK;
}

hone_status hn_tree_regressor_form(hone_call *call, int64_t width, hn_tree_form *f, hone_error *error) {
  hn_tree_lists l;
  f->trees.n_targets = hone_node_int(call->node, "n_targets", 1);
  sum_of(call->node, &f->trees.sum);
  hone_status s = hn_transform_read(call->node, &f->finish.transform, error);
  if (!s) s = hn_tree_lists_read(call->node, "target", &l, error);
  if (!s && l.base.n && (int64_t)l.base.n != f->trees.n_targets)
    s = hn_op_bad(call->node, error, "its lists of nodes, votes or base values differ in length");
  if (!s) s = hn_tree_lists_build(call, &l, f, error);
  return s ? s : hn_trees_check(call->node, &f->trees, width, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_tree_form_run(call, hn_tree_regressor_form, error);
}

static const hone_attr_desc attrs[] = {
    {.name = "aggregate_function", .type = HONE_ATTR_STRING},
    {.name = "base_values", .type = HONE_ATTR_FLOATS},
    {.name = "base_values_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "n_targets", .type = HONE_ATTR_INT},
    HN_TREE_NODE_ATTRS,
    {.name = "post_transform", .type = HONE_ATTR_STRING},
    {.name = "target_ids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_nodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_treeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_weights", .type = HONE_ATTR_FLOATS},
    {.name = "target_weights_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {0}};

HN_OP(tree_ensemble_regressor) = {HN_FEATURES_OP("TreeEnsembleRegressor", 1, 1), .attrs = attrs,
                                  .infer = infer, .reference = reference};
