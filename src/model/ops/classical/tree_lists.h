/* TreeEnsembleRegressor and TreeEnsembleClassifier: decision trees as one list of nodes, known by the numbers
 * of their tree and of their own, whose leaves may vote for several targets. */
#ifndef HN_MODEL_OPS_CLASSICAL_TREE_LISTS_H
#define HN_MODEL_OPS_CLASSICAL_TREE_LISTS_H

#include "model/ops/classical/trees.h"

/* A list of floats, or the same in doubles as a tensor. */
typedef struct hn_tree_reals {
  const float *floats;
  const hone_tensor *tensor;
  size_t n;
} hn_tree_reals;

static inline double hn_tree_real(const hn_tree_reals *r, int64_t i) {
  return r->floats ? (double)r->floats[i] : hn_get_f64(r->tensor, i);
}

typedef struct hn_tree_lists {
  size_t n_nodes, n_votes;
  const int64_t *tree, *id, *feature, *yes, *no, *missing, *vote_tree, *vote_id, *vote_target;
  const hone_string *mode;
  hn_tree_reals split, weight, base;
} hn_tree_lists;

/* votes: "target" or "class", with which the names of the lists of votes begin. HONE_ERROR_INPUT where lists
 * differ in length. */
hone_status hn_tree_lists_read(const hone_node *node, const char *votes, hn_tree_lists *lists,
                               hone_error *error);
/* Trees and base values; the trees' targets and sum are set already. */
hone_status hn_tree_lists_build(hone_call *call, const hn_tree_lists *lists, hn_tree_form *form,
                                hone_error *error);

/* The attributes of nodes. */
#define HN_TREE_NODE_ATTRS                                                                                   \
  {.name = "nodes_falsenodeids", .type = HONE_ATTR_INTS, .required = true},                                  \
      {.name = "nodes_featureids", .type = HONE_ATTR_INTS, .required = true},                                \
      {.name = "nodes_hitrates", .type = HONE_ATTR_FLOATS},                                                  \
      {.name = "nodes_hitrates_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3},                            \
      {.name = "nodes_missing_value_tracks_true", .type = HONE_ATTR_INTS},                                   \
      {.name = "nodes_modes", .type = HONE_ATTR_STRINGS, .required = true},                                  \
      {.name = "nodes_nodeids", .type = HONE_ATTR_INTS, .required = true},                                   \
      {.name = "nodes_treeids", .type = HONE_ATTR_INTS, .required = true},                                   \
      {.name = "nodes_truenodeids", .type = HONE_ATTR_INTS, .required = true},                               \
      {.name = "nodes_values", .type = HONE_ATTR_FLOATS}, {                                                  \
    .name = "nodes_values_as_tensor", .type = HONE_ATTR_TENSOR, .since = 3                                   \
  }

#endif
