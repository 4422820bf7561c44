#include "model/ops/classical/trees.h"

hone_status hn_trees_check(const hone_node *node, const hn_trees *t, int64_t width, hone_error *error) {
  for (int64_t i = 0; i < t->n_roots; i++)
    if (t->root[i] < 0 || t->root[i] >= t->n_nodes)
      return hn_op_bad(node, error, "tree %lld begins at node %lld of %lld", (long long)i,
                       (long long)t->root[i], (long long)t->n_nodes);
  for (int64_t i = 0; i < t->n_nodes; i++) {
    const hn_tree_node *n = &t->node[i];
    if (n->mode == HN_TREE_LEAF) {
      for (int64_t k = n->first; k < n->first + n->n; k++)
        if (t->vote[k].target < 0 || t->vote[k].target >= t->n_targets)
          return hn_op_bad(node, error, "a leaf votes for target %lld of %lld", (long long)t->vote[k].target,
                           (long long)t->n_targets);
      continue;
    }
    if (n->yes < 0 || n->yes >= t->n_nodes || n->no < 0 || n->no >= t->n_nodes)
      return hn_op_bad(node, error, "node %lld leads to %lld and %lld of %lld", (long long)i,
                       (long long)n->yes, (long long)n->no, (long long)t->n_nodes);
    if (n->feature < 0 || n->feature >= width)
      return hn_op_bad(node, error, "node %lld asks for feature %lld of %lld", (long long)i,
                       (long long)n->feature, (long long)width);
  }
  return HONE_OK;
}

static bool is_member(const hn_trees *t, const hn_tree_node *n, double x) {
  for (int64_t i = n->first; i < n->first + n->n; i++)
    if (t->member[i] == x) return true;
  return false;
}

static bool holds(const hn_trees *t, const hn_tree_node *n, double x) {
  if (n->missing && isnan(x)) return true;
  switch (n->mode) {
  case HN_TREE_LEQ: return x <= n->split;
  case HN_TREE_LT: return x < n->split;
  case HN_TREE_GTE: return x >= n->split;
  case HN_TREE_GT: return x > n->split;
  case HN_TREE_EQ: return x == n->split;
  case HN_TREE_NEQ: return x != n->split;
  case HN_TREE_MEMBER: return is_member(t, n, x);
  case HN_TREE_LEAF: break;
  }
  return false;
}

static void count_vote(const hn_trees *t, const hn_tree_vote *v, double *score, bool *voted) {
  double *s = &score[v->target];
  if (!voted[v->target])
    *s = v->weight;
  else if (t->sum == HN_TREE_MIN)
    *s = fmin(*s, v->weight);
  else if (t->sum == HN_TREE_MAX)
    *s = fmax(*s, v->weight);
  else
    *s += v->weight;
  voted[v->target] = true;
}

hone_status hn_trees_score(const hone_node *node, const hn_trees *t, const double *sample, double *score,
                           bool *voted, hone_error *error) {
  for (int64_t i = 0; i < t->n_targets; i++) score[i] = 0, voted[i] = false;
  for (int64_t r = 0; r < t->n_roots; r++) {
    const hn_tree_node *n = &t->node[t->root[r]];
    for (int64_t steps = 0; n->mode != HN_TREE_LEAF; steps++) {
      if (steps == t->n_nodes) return hn_op_bad(node, error, "tree %lld leads in circles", (long long)r);
      n = &t->node[holds(t, n, sample[n->feature]) ? n->yes : n->no];
    }
    for (int64_t i = 0; i < n->n; i++) count_vote(t, &t->vote[n->first + i], score, voted);
  }
  for (int64_t i = 0; i < t->n_targets && t->sum == HN_TREE_AVERAGE; i++) score[i] /= (double)t->n_roots;
  return HONE_OK;
}
