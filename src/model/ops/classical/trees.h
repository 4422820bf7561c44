/* Ensembles of decision trees: a sample goes down every tree to a leaf, whose votes are added up (or
 * averaged, or the least or greatest is taken) for each target. */
#ifndef HN_MODEL_OPS_CLASSICAL_TREES_H
#define HN_MODEL_OPS_CLASSICAL_TREES_H

#include "model/ops/classical/features.h"

typedef enum hn_tree_mode {
  HN_TREE_LEQ = 0,
  HN_TREE_LT,
  HN_TREE_GTE,
  HN_TREE_GT,
  HN_TREE_EQ,
  HN_TREE_NEQ,
  HN_TREE_MEMBER, /* one of the node's members */
  HN_TREE_LEAF
} hn_tree_mode;

typedef enum hn_tree_sum { HN_TREE_AVERAGE = 0, HN_TREE_SUM, HN_TREE_MIN, HN_TREE_MAX } hn_tree_sum;

typedef struct hn_tree_node {
  hn_tree_mode mode;
  bool missing; /* NaN is true */
  int64_t feature;
  double split;
  int64_t yes, no;  /* numbers of nodes */
  int64_t first, n; /* MEMBER: members; LEAF: votes */
} hn_tree_node;

typedef struct hn_tree_vote {
  int64_t target;
  double weight;
} hn_tree_vote;

typedef struct hn_trees {
  int64_t n_nodes, n_roots, n_targets;
  hn_tree_node *node;
  const int64_t *root;
  const hn_tree_vote *vote;
  const double *member;
  hn_tree_sum sum;
} hn_trees;

/* What becomes of a row's votes. */
typedef struct hn_tree_finish {
  hn_transform transform;
  int64_t n_base; /* 0: none */
  const double *base;
  bool classes;      /* the classifier */
  bool by_one;       /* two classes, of which leaves vote for one: */
  bool second;       /* the second */
  bool all_positive; /* no leaf's vote is negative */
} hn_tree_finish;

typedef struct hn_tree_form {
  hn_trees trees;
  hn_tree_finish finish;
} hn_tree_form;

/* The ensemble that the call's node is, checked, in the call's scratch memory; width: features of a sample.
 * Only the node and `scratch` of the call are asked. */
typedef hone_status (*hn_tree_form_fn)(hone_call *call, int64_t width, hn_tree_form *form, hone_error *error);
hone_status hn_tree_ensemble_form(hone_call *call, int64_t width, hn_tree_form *form, hone_error *error);
hone_status hn_tree_regressor_form(hone_call *call, int64_t width, hn_tree_form *form, hone_error *error);
hone_status hn_tree_classifier_form(hone_call *call, int64_t width, hn_tree_form *form, hone_error *error);

/* Counts what the leaf says, once a tree, in their order; then the row's end: its scores, and the number of
 * its class. */
void hn_trees_vote(const hn_trees *trees, const hn_tree_node *leaf, double *score, bool *voted);
int64_t hn_trees_finish(const hn_trees *trees, const hn_tree_finish *finish, double *score, bool *voted);

/* The reference of all three operators. */
hone_status hn_tree_form_run(hone_call *call, hn_tree_form_fn form, hone_error *error);

/* HONE_ERROR_INPUT unless every number leads to something that is there; width: features of a sample. */
hone_status hn_trees_check(const hone_node *node, const hn_trees *trees, int64_t width, hone_error *error);
/* score[n_targets] of a sample, before its end; voted[n_targets]: whether a leaf had anything to say.
 * HONE_ERROR_INPUT where a tree leads in circles. */
hone_status hn_trees_score(const hone_node *node, const hn_trees *trees, const double *sample, double *score,
                           bool *voted, hone_error *error);

#endif
