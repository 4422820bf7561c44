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

void hn_trees_vote(const hn_trees *t, const hn_tree_node *leaf, double *score, bool *voted) {
  for (int64_t i = 0; i < leaf->n; i++) count_vote(t, &t->vote[leaf->first + i], score, voted);
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
    hn_trees_vote(t, n, score, voted);
  }
  return HONE_OK;
}

static int64_t most_votes(const double *score, const bool *voted, int64_t n) {
  int64_t most = -1;
  for (int64_t i = 0; i < n; i++)
    if (voted[i] && (most < 0 || score[i] > score[most])) most = i;
  return most < 0 ? 0 : most;
}

/* Of two classes, of which leaves vote for one. Votes for the first are those for the second, as ONNX Runtime
 * has it: that is how converters write the margin of a binary model. */
static int64_t choose_by_one(const hn_tree_finish *f, double *score) {
  const double votes = score[f->second] + (f->n_base ? f->base[0] : 0);
  if (f->second) {
    score[0] = 0, score[1] = votes;
    hn_transform_row(f->transform, score, 2);
  } else {
    hn_transform_pair(f->transform, f->all_positive, votes, score);
  }
  return votes > (f->all_positive ? 0.5 : 0);
}

int64_t hn_trees_finish(const hn_trees *t, const hn_tree_finish *f, double *score, bool *voted) {
  for (int64_t i = 0; i < t->n_targets && t->sum == HN_TREE_AVERAGE; i++) score[i] /= (double)t->n_roots;
  if (f->by_one) return choose_by_one(f, score);
  /* Where no leaf voted there is no least or greatest: 0, as ONNX Runtime has it. */
  for (int64_t i = 0; i < f->n_base; i++) {
    if (f->classes || voted[i] || t->sum == HN_TREE_SUM || t->sum == HN_TREE_AVERAGE) score[i] += f->base[i];
    voted[i] = true;
  }
  const int64_t label = f->classes ? most_votes(score, voted, t->n_targets) : 0;
  hn_transform_row(f->transform, score, t->n_targets);
  return label;
}

hone_status hn_tree_form_run(hone_call *call, hn_tree_form_fn form, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t rows = hn_features_rows(&x->desc), width = hn_features_width(&x->desc);
  hn_tree_form f = {0};
  hone_status s = form(call, width, &f, error);
  if (s) return s;
  const int64_t n = f.trees.n_targets;
  hone_tensor *label = f.finish.classes ? call->output[0] : NULL, *y = !f.finish.classes     ? call->output[0]
                                                                       : call->n_outputs > 1 ? call->output[1]
                                                                                             : NULL;
  const hn_labels labels = hn_labels_of(call->node, "classlabels_int64s");
  double *sample = hn_scratch(call, width, sizeof *sample, error);
  double *score = hn_scratch(call, n, sizeof *score, error);
  bool *voted = hn_scratch(call, n, sizeof *voted, error);
  if (!sample || !score || !voted) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(sample, x, r * width, width);
    if ((s = hn_trees_score(call->node, &f.trees, sample, score, voted, error))) return s;
    const int64_t k = hn_trees_finish(&f.trees, &f.finish, score, voted);
    if (label) hn_labels_put(&labels, label, r, k);
    if (y) hn_store_f64(y, r * n, score, n);
  }
  return HONE_OK;
}
