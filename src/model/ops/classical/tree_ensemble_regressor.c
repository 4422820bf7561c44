/* TreeEnsembleRegressor: decision trees as one list of nodes, known by the numbers of their tree and of their
 * own, whose leaves may vote for several targets. */
#include "model/ops/classical/trees.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const sums[] = {"AVERAGE", "SUM", "MIN", "MAX"};
static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                    "BRANCH_EQ",  "BRANCH_NEQ", NULL,         "LEAF"};

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

/* A list of floats, or the same in doubles as a tensor. */
typedef struct reals {
  const float *floats;
  const hone_tensor *tensor;
  size_t n;
} reals;

static reals reals_of(const hone_node *node, const char *name) {
  char doubles[48];
  snprintf(doubles, sizeof doubles, "%s_as_tensor", name);
  reals r = {.tensor = hone_node_tensor(node, doubles)};
  if (r.tensor && hone_dtype_is_float(r.tensor->desc.dtype))
    r.n = (size_t)hn_count(r.tensor);
  else
    r = (reals){.floats = hone_node_floats(node, name, &r.n), .n = r.n};
  return r;
}

static double real_at(const reals *r, int64_t i) {
  return r->floats ? (double)r->floats[i] : hn_get_f64(r->tensor, i);
}

typedef struct lists {
  size_t n_nodes, n_votes;
  const int64_t *tree, *id, *feature, *yes, *no, *missing, *vote_tree, *vote_id, *vote_target;
  const hone_string *mode;
  reals split, weight, base;
} lists;

static const int64_t *ints(const hone_node *node, const char *name, size_t n, bool *fits) {
  size_t have;
  const int64_t *list = hone_node_ints(node, name, &have);
  if (have != n) *fits = false;
  return list;
}

static hone_status read_lists(const hone_node *node, lists *l, hone_error *error) {
  bool fits = true;
  size_t n_modes;
  l->tree = hone_node_ints(node, "nodes_treeids", &l->n_nodes);
  l->id = ints(node, "nodes_nodeids", l->n_nodes, &fits);
  l->feature = ints(node, "nodes_featureids", l->n_nodes, &fits);
  l->yes = ints(node, "nodes_truenodeids", l->n_nodes, &fits);
  l->no = ints(node, "nodes_falsenodeids", l->n_nodes, &fits);
  size_t n_missing;
  l->missing = hone_node_ints(node, "nodes_missing_value_tracks_true", &n_missing);
  if (n_missing && n_missing != l->n_nodes) fits = false;
  l->mode = hone_node_strings(node, "nodes_modes", &n_modes);
  l->vote_tree = hone_node_ints(node, "target_treeids", &l->n_votes);
  l->vote_id = ints(node, "target_nodeids", l->n_votes, &fits);
  l->vote_target = ints(node, "target_ids", l->n_votes, &fits);
  l->split = reals_of(node, "nodes_values");
  l->weight = reals_of(node, "target_weights");
  l->base = reals_of(node, "base_values");
  fits = fits && n_modes == l->n_nodes && l->split.n == l->n_nodes && l->weight.n == l->n_votes &&
         l->n_nodes && (!l->base.n || (int64_t)l->base.n == hone_node_int(node, "n_targets", 1));
  return fits ? HONE_OK : hn_op_bad(node, error, "its lists of nodes, votes or base values differ in length");
}

/* A node's numbers, and where it stands. */
typedef struct place {
  int64_t tree, id, at;
} place;

static int by_numbers(const void *a, const void *b) {
  const place *x = a, *y = b;
  return x->tree != y->tree ? (x->tree > y->tree) - (x->tree < y->tree) : (x->id > y->id) - (x->id < y->id);
}

static int64_t find(const place *places, size_t n, int64_t tree, int64_t id) {
  const place wanted = {tree, id, 0}, *p = bsearch(&wanted, places, n, sizeof *places, by_numbers);
  return p ? p->at : -1;
}

static int mode_of(hone_string s) {
  for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
    if (modes[i] && s.len == strlen(modes[i]) && memcmp(s.ptr, modes[i], s.len) == 0) return i;
  return -1;
}

static hone_status build_nodes(const hone_node *node, const lists *l, const place *places, hn_trees *t,
                               bool *child, hone_error *error) {
  for (int64_t i = 0; i < t->n_nodes; i++) {
    const int mode = mode_of(l->mode[i]);
    if (mode < 0)
      return hn_op_bad(node, error, "node %lld has mode '%.*s'", (long long)i,
                       (int)(l->mode[i].len < 40 ? l->mode[i].len : 40), l->mode[i].ptr);
    t->node[i] = (hn_tree_node){.mode = (hn_tree_mode)mode};
    if (mode == HN_TREE_LEAF) continue;
    t->node[i].missing = l->missing && l->missing[i];
    t->node[i].feature = l->feature[i];
    t->node[i].split = real_at(&l->split, i);
    t->node[i].yes = find(places, l->n_nodes, l->tree[i], l->yes[i]);
    t->node[i].no = find(places, l->n_nodes, l->tree[i], l->no[i]);
    if (t->node[i].yes >= 0) child[t->node[i].yes] = true;
    if (t->node[i].no >= 0) child[t->node[i].no] = true;
  }
  return HONE_OK;
}

/* The votes of a leaf side by side. */
static hone_status build_votes(const hone_node *node, const lists *l, const place *places, hn_trees *t,
                               hn_tree_vote *vote, hone_error *error) {
  for (size_t k = 0; k < l->n_votes; k++) {
    const int64_t at = find(places, l->n_nodes, l->vote_tree[k], l->vote_id[k]);
    if (at < 0 || t->node[at].mode != HN_TREE_LEAF)
      return hn_op_bad(node, error, "vote %zu is of node %lld of tree %lld, which is no leaf", k,
                       (long long)l->vote_id[k], (long long)l->vote_tree[k]);
    t->node[at].n++;
  }
  int64_t next = 0;
  for (int64_t i = 0; i < t->n_nodes; i++) {
    t->node[i].first = next;
    next += t->node[i].n;
    t->node[i].n = 0;
  }
  for (size_t k = 0; k < l->n_votes; k++) {
    hn_tree_node *leaf = &t->node[find(places, l->n_nodes, l->vote_tree[k], l->vote_id[k])];
    vote[leaf->first + leaf->n++] = (hn_tree_vote){l->vote_target[k], real_at(&l->weight, (int64_t)k)};
  }
  return HONE_OK;
}

static hone_status build(hone_call *call, const lists *l, hn_trees *t, hone_error *error) {
  const int64_t n = (int64_t)l->n_nodes;
  *t = (hn_trees){.n_nodes = n, .n_targets = hone_node_int(call->node, "n_targets", 1)};
  sum_of(call->node, &t->sum);
  place *places = hn_scratch(call, n, sizeof *places, error);
  bool *child = hn_scratch(call, n, sizeof *child, error);
  int64_t *root = hn_scratch(call, n, sizeof *root, error);
  hn_tree_vote *vote = hn_scratch(call, (int64_t)l->n_votes, sizeof *vote, error);
  t->node = hn_scratch(call, n, sizeof *t->node, error);
  if (!places || !child || !root || !vote || !t->node) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) places[i] = (place){l->tree[i], l->id[i], i}, child[i] = false;
  qsort(places, (size_t)n, sizeof *places, by_numbers);
  for (int64_t i = 1; i < n; i++)
    if (by_numbers(&places[i - 1], &places[i]) == 0)
      return hn_op_bad(call->node, error, "tree %lld has two nodes %lld", (long long)places[i].tree,
                       (long long)places[i].id);
  hone_status s = build_nodes(call->node, l, places, t, child, error);
  if (!s) s = build_votes(call->node, l, places, t, vote, error);
  for (int64_t i = 0; i < n; i++)
    if (!child[i]) root[t->n_roots++] = i;
  t->root = root;
  t->vote = vote;
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t rows = hn_features_rows(&x->desc), width = hn_features_width(&x->desc);
  lists l;
  hn_trees t;
  hn_transform transform;
  hone_status s = hn_transform_read(call->node, &transform, error);
  if (!s) s = read_lists(call->node, &l, error);
  if (!s) s = build(call, &l, &t, error);
  if (!s) s = hn_trees_check(call->node, &t, width, error);
  if (s) return s;
  double *sample = hn_scratch(call, width, sizeof *sample, error);
  double *score = hn_scratch(call, t.n_targets, sizeof *score, error);
  bool *voted = hn_scratch(call, t.n_targets, sizeof *voted, error);
  if (!sample || !score || !voted) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(sample, x, r * width, width);
    if ((s = hn_trees_score(call->node, &t, sample, score, voted, error))) return s;
    /* Where no leaf voted there is no least or greatest: 0, as ONNX Runtime has it. */
    for (int64_t i = 0; i < t.n_targets && l.base.n; i++)
      if (voted[i] || t.sum == HN_TREE_SUM || t.sum == HN_TREE_AVERAGE) score[i] += real_at(&l.base, i);
    hn_transform_row(transform, score, t.n_targets);
    hn_store_f64(call->output[0], r * t.n_targets, score, t.n_targets);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "aggregate_function", .type = HONE_ATTR_STRING},
    {.name = "base_values", .type = HONE_ATTR_FLOATS},
    {.name = "base_values_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "n_targets", .type = HONE_ATTR_INT},
    {.name = "nodes_falsenodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_featureids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_hitrates", .type = HONE_ATTR_FLOATS},
    {.name = "nodes_hitrates_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "nodes_missing_value_tracks_true", .type = HONE_ATTR_INTS},
    {.name = "nodes_modes", .type = HONE_ATTR_STRINGS, .required = true},
    {.name = "nodes_nodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_treeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_truenodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "nodes_values", .type = HONE_ATTR_FLOATS},
    {.name = "nodes_values_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {.name = "post_transform", .type = HONE_ATTR_STRING},
    {.name = "target_ids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_nodeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_treeids", .type = HONE_ATTR_INTS, .required = true},
    {.name = "target_weights", .type = HONE_ATTR_FLOATS},
    {.name = "target_weights_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},
    {0}};

HN_OP(tree_ensemble_regressor) = {HN_FEATURES_OP("TreeEnsembleRegressor", 1, 1), .attrs = attrs,
                                  .infer = infer, .reference = reference};
