/* TreeEnsemble: decision trees whose inner nodes and leaves stand in lists of their own. */
#include "model/ops/classical/trees.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank >= 0 && x->rank != 2)
    return hn_op_bad(io->node, error, "X has %d dimensions; expected 2", (int)x->rank);
  const int64_t targets = hone_node_int(io->node, "n_targets", 1);
  const int64_t sum = hone_node_int(io->node, "aggregate_function", HN_TREE_SUM);
  if (targets < 1) return hn_op_bad(io->node, error, "n_targets is %lld", (long long)targets);
  if (sum < HN_TREE_AVERAGE || sum > HN_TREE_MAX)
    return hn_op_bad(io->node, error, "aggregate_function is %lld; expected 0 to 3", (long long)sum);
  hn_transform transform;
  const hone_status s =
      hn_transform_known(io->node, hone_node_int(io->node, "post_transform", 0), &transform, error);
  if (!s) hn_infer_set(io, 0, x->dtype, 2, (int64_t[]){hn_features_rows(x), targets});
  return s;
}

/* The node's lists. */
typedef struct lists {
  size_t n_nodes, n_leaves, n_roots;
  const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *missing, *target, *root;
  const hone_tensor *mode, *split, *weight, *members;
} lists;

static const int64_t *ints(const hone_node *node, const char *name, size_t n, bool *fits) {
  size_t have;
  const int64_t *list = hone_node_ints(node, name, &have);
  if (have != n) *fits = false;
  return list;
}

static hone_status read_lists(const hone_node *node, lists *l, hone_error *error) {
  bool fits = true;
  l->feature = hone_node_ints(node, "nodes_featureids", &l->n_nodes);
  l->target = hone_node_ints(node, "leaf_targetids", &l->n_leaves);
  l->root = hone_node_ints(node, "tree_roots", &l->n_roots);
  l->yes = ints(node, "nodes_truenodeids", l->n_nodes, &fits);
  l->no = ints(node, "nodes_falsenodeids", l->n_nodes, &fits);
  l->yes_leaf = ints(node, "nodes_trueleafs", l->n_nodes, &fits);
  l->no_leaf = ints(node, "nodes_falseleafs", l->n_nodes, &fits);
  l->missing = hone_node_has(node, "nodes_missing_value_tracks_true")
                   ? ints(node, "nodes_missing_value_tracks_true", l->n_nodes, &fits)
                   : NULL;
  l->mode = hone_node_tensor(node, "nodes_modes");
  l->split = hone_node_tensor(node, "nodes_splits");
  l->weight = hone_node_tensor(node, "leaf_weights");
  l->members = hone_node_tensor(node, "membership_values");
  fits = fits && hn_count(l->mode) == (int64_t)l->n_nodes && hn_count(l->split) == (int64_t)l->n_nodes &&
         hn_count(l->weight) == (int64_t)l->n_leaves && l->mode->desc.dtype == HONE_DTYPE_U8 &&
         hone_dtype_is_float(l->split->desc.dtype) && hone_dtype_is_float(l->weight->desc.dtype) &&
         (!l->members || hone_dtype_is_float(l->members->desc.dtype));
  return fits ? HONE_OK : hn_op_bad(node, error, "its lists of nodes or leaves differ in length or type");
}

/* Sets of members stand in the order of the nodes, a NaN behind each. */
static hone_status take_members(const hone_node *node, const hn_trees *t, int64_t n_members, int64_t *at,
                                hn_tree_node *to, hone_error *error) {
  to->first = *at;
  while (*at < n_members && !isnan(t->member[*at])) ++*at;
  to->n = *at - to->first;
  if (*at == n_members)
    return hn_op_bad(node, error, "membership_values has fewer sets than there are nodes");
  ++*at;
  return HONE_OK;
}

/* Inner nodes first, then leaves. */
static hone_status build(hone_call *call, const lists *l, hn_trees *t, hone_error *error) {
  const int64_t n = (int64_t)l->n_nodes, leaves = (int64_t)l->n_leaves;
  *t = (hn_trees){.n_nodes = n + leaves,
                  .n_roots = (int64_t)l->n_roots,
                  .n_targets = hone_node_int(call->node, "n_targets", 1),
                  .root = l->root,
                  .sum = (hn_tree_sum)hone_node_int(call->node, "aggregate_function", HN_TREE_SUM)};
  hn_tree_vote *vote = hn_scratch(call, leaves, sizeof *vote, error);
  t->vote = vote;
  if (!vote || !(t->node = hn_scratch(call, n + leaves, sizeof *t->node, error))) return HONE_ERROR_MEMORY;
  if (l->members && !(t->member = hn_all_f64(call, l->members, error))) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < leaves; i++) {
    vote[i] = (hn_tree_vote){l->target[i], hn_get_f64(l->weight, i)};
    t->node[n + i] = (hn_tree_node){.mode = HN_TREE_LEAF, .first = i, .n = 1};
  }
  for (int64_t i = 0, at = 0; i < n; i++) {
    const int64_t mode = hn_get_i64(l->mode, i), yes = l->yes[i], no = l->no[i];
    if (mode > HN_TREE_MEMBER)
      return hn_op_bad(call->node, error, "node %lld has mode %lld", (long long)i, (long long)mode);
    t->node[i] = (hn_tree_node){.mode = (hn_tree_mode)mode,
                                .missing = l->missing && l->missing[i],
                                .feature = l->feature[i],
                                .split = hn_get_f64(l->split, i),
                                /* beyond its own list: nowhere */
                                .yes = yes < 0 || yes >= (l->yes_leaf[i] ? leaves : n) ? -1
                                       : l->yes_leaf[i]                                ? n + yes
                                                                                       : yes,
                                .no = no < 0 || no >= (l->no_leaf[i] ? leaves : n) ? -1
                                      : l->no_leaf[i]                              ? n + no
                                                                                   : no};
    const hone_status s =
        mode == HN_TREE_MEMBER
            ? take_members(call->node, t, l->members ? hn_count(l->members) : 0, &at, &t->node[i], error)
            : HONE_OK;
    if (s) return s;
  }
  return HONE_OK;
}

hone_status hn_tree_ensemble_form(hone_call *call, int64_t width, hn_tree_form *f, hone_error *error) {
  lists l;
  hone_status s = hn_transform_known(call->node, hone_node_int(call->node, "post_transform", 0),
                                     &f->finish.transform, error);
  if (!s) s = read_lists(call->node, &l, error);
  if (!s) s = build(call, &l, &f->trees, error);
  return s ? s : hn_trees_check(call->node, &f->trees, width, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_tree_form_run(call, hn_tree_ensemble_form, error);
}

static const hone_attr_desc attrs[] = {
    {.name = "aggregate_function", .type = HONE_ATTR_INT},
    {.name = "leaf_targetids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "leaf_weights", .type = HONE_ATTR_TENSOR, .required = true},
    {.name = "membership_values", .type = HONE_ATTR_TENSOR},
    {.name = "n_targets", .type = HONE_ATTR_INT},
    {.name = "nodes_falseleafs", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_falsenodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_featureids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_hitrates", .type = HONE_ATTR_TENSOR},
    {.name = "nodes_missing_value_tracks_true", .type = HONE_ATTR_INTS},
    {.name = "nodes_modes", .type = HONE_ATTR_TENSOR, .required = true},
    {.name = "nodes_splits", .type = HONE_ATTR_TENSOR, .required = true},
    {.name = "nodes_trueleafs", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_truenodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "post_transform", .type = HONE_ATTR_INT},
    {.name = "tree_roots", .type = HONE_ATTR_INTS, .required = true},
    {0}};

HN_OP(tree_ensemble) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "ai.onnx.ml",
                        .op_type = "TreeEnsemble",
                        .since = 5,
                        HN_INPUTS(1, 1),
                        HN_OUTPUTS(1, 1),
                        .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) |
                                 HONE_TYPES(HONE_DTYPE_F16),
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
