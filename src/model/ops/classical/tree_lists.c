#include "model/ops/classical/tree_lists.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                    "BRANCH_EQ",  "BRANCH_NEQ", NULL,         "LEAF"};

static hn_tree_reals reals_of(const hone_node *node, const char *name) {
  char doubles[48];
  snprintf(doubles, sizeof doubles, "%s_as_tensor", name);
  hn_tree_reals r = {.tensor = hone_node_tensor(node, doubles)};
  if (r.tensor && hone_dtype_is_float(r.tensor->desc.dtype))
    r.n = (size_t)hn_count(r.tensor);
  else
    r.floats = hone_node_floats(node, name, &r.n), r.tensor = NULL;
  return r;
}

static const int64_t *ints(const hone_node *node, const char *name, size_t n, bool *fits) {
  size_t have;
  const int64_t *list = hone_node_ints(node, name, &have);
  if (have != n) *fits = false;
  return list;
}

/* Lists of votes: their names begin with "target" or "class". */
static void read_votes(const hone_node *node, const char *votes, hn_tree_lists *l, bool *fits) {
  char name[32];
  snprintf(name, sizeof name, "%s_treeids", votes);
  l->vote_tree = hone_node_ints(node, name, &l->n_votes);
  snprintf(name, sizeof name, "%s_nodeids", votes);
  l->vote_id = ints(node, name, l->n_votes, fits);
  snprintf(name, sizeof name, "%s_ids", votes);
  l->vote_target = ints(node, name, l->n_votes, fits);
  snprintf(name, sizeof name, "%s_weights", votes);
  l->weight = reals_of(node, name);
}

hone_status hn_tree_lists_read(const hone_node *node, const char *votes, hn_tree_lists *l,
                               hone_error *error) {
  bool fits = true;
  size_t n_modes;
  l->tree = hone_node_ints(node, "nodes_treeids", &l->n_nodes);
  l->id = ints(node, "nodes_nodeids", l->n_nodes, &fits);
  l->feature = ints(node, "nodes_featureids", l->n_nodes, &fits);
  l->yes = ints(node, "nodes_truenodeids", l->n_nodes, &fits);
  l->no = ints(node, "nodes_falsenodeids", l->n_nodes, &fits);
  size_t n_missing;
  l->missing = hone_node_ints(node, "nodes_missing_value_tracks_true", &n_missing);
  if (!n_missing) l->missing = NULL;
  if (n_missing && n_missing != l->n_nodes) fits = false;
  l->mode = hone_node_strings(node, "nodes_modes", &n_modes);
  read_votes(node, votes, l, &fits);
  l->split = reals_of(node, "nodes_values");
  l->base = reals_of(node, "base_values");
  fits = fits && n_modes == l->n_nodes && l->split.n == l->n_nodes && l->weight.n == l->n_votes && l->n_nodes;
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

/* `guess`: where it stands if numbers have no gaps. */
static int64_t find(const place *places, size_t n, int64_t tree, int64_t id, int64_t guess) {
  const place wanted = {tree, id, 0}, *p = NULL;
  if (guess >= 0 && guess < (int64_t)n && by_numbers(&places[guess], &wanted) == 0)
    p = &places[guess];
  else
    p = bsearch(&wanted, places, n, sizeof *places, by_numbers);
  return p ? p->at : -1;
}

/* base + to - from, anything where that is no number: the numbers are the file's. */
static int64_t guessed(int64_t base, int64_t to, int64_t from) {
  int64_t by, at;
  return __builtin_sub_overflow(to, from, &by) || __builtin_add_overflow(base, by, &at) ? -1 : at;
}

static int mode_of(hone_string s) {
  for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
    if (modes[i] && s.len == strlen(modes[i]) && memcmp(s.ptr, modes[i], s.len) == 0) return i;
  return -1;
}

static hone_status build_nodes(const hone_node *node, const hn_tree_lists *l, const place *places,
                               hn_trees *t, bool *child, hone_error *error) {
  for (int64_t i = 0; i < t->n_nodes; i++) {
    const int mode = mode_of(l->mode[i]);
    if (mode < 0)
      return hn_op_bad(node, error, "node %lld has mode '%.*s'", (long long)i,
                       (int)(l->mode[i].len < 40 ? l->mode[i].len : 40), l->mode[i].ptr);
    t->node[i] = (hn_tree_node){.mode = (hn_tree_mode)mode};
    if (mode == HN_TREE_LEAF) continue;
    t->node[i].missing = l->missing && l->missing[i];
    t->node[i].feature = l->feature[i];
    t->node[i].split = hn_tree_real(&l->split, i);
    t->node[i].yes = find(places, l->n_nodes, l->tree[i], l->yes[i], guessed(i, l->yes[i], l->id[i]));
    t->node[i].no = find(places, l->n_nodes, l->tree[i], l->no[i], guessed(i, l->no[i], l->id[i]));
    if (t->node[i].yes >= 0) child[t->node[i].yes] = true;
    if (t->node[i].no >= 0) child[t->node[i].no] = true;
  }
  return HONE_OK;
}

/* The votes of a leaf side by side. */
static hone_status build_votes(const hone_node *node, const hn_tree_lists *l, const place *places,
                               hn_trees *t, hn_tree_vote *vote, hone_error *error) {
  for (size_t k = 0, last = 0; k < l->n_votes; k++) {
    const int64_t at = find(places, l->n_nodes, l->vote_tree[k], l->vote_id[k],
                            guessed((int64_t)last, l->vote_id[k], l->id[last]));
    if (at < 0 || t->node[at].mode != HN_TREE_LEAF)
      return hn_op_bad(node, error, "vote %zu is of node %lld of tree %lld, which is no leaf", k,
                       (long long)l->vote_id[k], (long long)l->vote_tree[k]);
    t->node[at].n++;
    last = (size_t)at;
  }
  int64_t next = 0;
  for (int64_t i = 0; i < t->n_nodes; i++) {
    t->node[i].first = next;
    next += t->node[i].n;
    t->node[i].n = 0;
  }
  for (size_t k = 0, last = 0; k < l->n_votes; k++) {
    const int64_t at = find(places, l->n_nodes, l->vote_tree[k], l->vote_id[k],
                            guessed((int64_t)last, l->vote_id[k], l->id[last]));
    hn_tree_node *leaf = &t->node[at];
    last = (size_t)at;
    vote[leaf->first + leaf->n++] = (hn_tree_vote){l->vote_target[k], hn_tree_real(&l->weight, (int64_t)k)};
  }
  return HONE_OK;
}

/* Nodes that are nobody's child are roots, and every tree has one. */
static hone_status build_roots(const hone_node *node, const place *places, const bool *child, hn_trees *t,
                               int64_t *root, hone_error *error) {
  for (int64_t i = 0; i < t->n_nodes; i++)
    if (!child[i]) root[t->n_roots++] = i;
  for (int64_t i = 0; i < t->n_nodes;) {
    const int64_t tree = places[i].tree;
    bool rooted = false;
    for (; i < t->n_nodes && places[i].tree == tree; i++) rooted = rooted || !child[places[i].at];
    if (!rooted) return hn_op_bad(node, error, "tree %lld leads in circles: it has no root", (long long)tree);
  }
  return HONE_OK;
}

hone_status hn_tree_lists_build(hone_call *call, const hn_tree_lists *l, hn_tree_form *form,
                                hone_error *error) {
  hn_trees *t = &form->trees;
  double *base = hn_scratch(call, (int64_t)l->base.n, sizeof *base, error);
  if (!base) return HONE_ERROR_MEMORY;
  for (size_t i = 0; i < l->base.n; i++) base[i] = hn_tree_real(&l->base, (int64_t)i);
  form->finish.base = base, form->finish.n_base = (int64_t)l->base.n;
  const int64_t n = t->n_nodes = (int64_t)l->n_nodes;
  place *places = hn_scratch(call, n, sizeof *places, error);
  bool *child = hn_scratch(call, n, sizeof *child, error);
  int64_t *root = hn_scratch(call, n, sizeof *root, error);
  hn_tree_vote *vote = hn_scratch(call, (int64_t)l->n_votes, sizeof *vote, error);
  t->node = hn_scratch(call, n, sizeof *t->node, error);
  if (!places || !child || !root || !vote || !t->node) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) places[i] = (place){l->tree[i], l->id[i], i}, child[i] = false;
  bool sorted = true;
  for (int64_t i = 1; i < n && sorted; i++) sorted = by_numbers(&places[i - 1], &places[i]) <= 0;
  if (!sorted) qsort(places, (size_t)n, sizeof *places, by_numbers);
  for (int64_t i = 1; i < n; i++)
    if (by_numbers(&places[i - 1], &places[i]) == 0)
      return hn_op_bad(call->node, error, "tree %lld has two nodes %lld", (long long)places[i].tree,
                       (long long)places[i].id);
  hone_status s = build_nodes(call->node, l, places, t, child, error);
  if (!s) s = build_votes(call->node, l, places, t, vote, error);
  if (!s) s = build_roots(call->node, places, child, t, root, error);
  t->root = root;
  t->vote = vote;
  return s;
}
