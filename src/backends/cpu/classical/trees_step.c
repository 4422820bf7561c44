#include "backends/cpu/classical/trees_step.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

enum {
  LANES = 8,  /* walks that go on at once: one waits for memory at every node */
  BLOCK = 64, /* rows that go through one tree after the other, so that it stays in L1 */
};

/* A node whose question is x <= split. A leaf leads to itself. */
typedef struct short_node {
  float split;
  int32_t feature, next[2]; /* where the answer is yes, no */
} short_node;

/* The blob: this, and the lists at these bytes. */
typedef struct blob_head {
  hn_tree_form form; /* without pointers */
  int64_t rows, width, members;
  bool brief;  /* every node fits a short_node, as long as no feature is NaN */
  bool single; /* one target, for which every leaf has one vote, and votes are added up */
  size_t nodes, roots, votes, member, base, brief_nodes, value, bytes;
} blob_head;

static bool takes(const hone_step *s, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x)) return hn_refuse(why, "the features are not row-major f32 of a known shape");
  if (x->rank < 1 || x->rank > 2 || hone_desc_count(x) < 1) return hn_refuse(why, "no rows of features");
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    const hone_tensor_desc *y = &s->output[i].desc;
    if (hn_step_gives(s, i) &&
        (!hn_step_plain(y) || (y->dtype != HONE_DTYPE_F32 && y->dtype != HONE_DTYPE_I64)))
      return hn_refuse(why, "output %u is no row-major f32 or i64 of a known shape", i);
  }
  return true;
}

/* The reference's call, as far as reading attributes needs one. */
static void *from_arena(hone_call *call, size_t bytes) { return hn_arena_raw(call->impl, bytes, 64); }

static hone_status read_form(const hone_step *s, const hn_trees_step_config *c, hn_arena *arena,
                             hn_tree_form *f, hone_error *error) {
  hone_call call = {.node = s->node, .scratch = from_arena, .impl = arena};
  memset(f, 0, sizeof *f);
  return c->form(&call, hn_features_width(&s->input[0].desc), f, error);
}

/* Whether every walk ends, by the longest one from each node; the memory is of n_nodes bytes and numbers. */
static bool ends(const hn_trees *t, uint8_t *state, int64_t *stack) {
  memset(state, 0, (size_t)t->n_nodes);
  for (int64_t r = 0; r < t->n_roots; r++) {
    int64_t depth = 0;
    stack[depth++] = t->root[r];
    while (depth) {
      const int64_t at = stack[depth - 1];
      const hn_tree_node *n = &t->node[at];
      if (n->mode == HN_TREE_LEAF || state[at] == 2) {
        state[at] = 2, depth--;
        continue;
      }
      state[at] = 1; /* on the way from the root to here */
      int64_t next = state[n->yes] != 2 ? n->yes : state[n->no] != 2 ? n->no : -1;
      if (next < 0)
        state[at] = 2, depth--;
      else if (state[next] == 1)
        return false;
      else
        stack[depth++] = next;
    }
  }
  return true;
}

static bool is_brief(const hn_trees *t) {
  for (int64_t i = 0; i < t->n_nodes; i++)
    if (t->node[i].mode > HN_TREE_GT && t->node[i].mode != HN_TREE_LEAF) return false;
  return t->n_nodes <= INT32_MAX;
}

static bool is_single(const hn_tree_form *f) {
  if (f->trees.n_targets != 1 || (f->trees.sum != HN_TREE_SUM && f->trees.sum != HN_TREE_AVERAGE))
    return false;
  for (int64_t i = 0; i < f->trees.n_nodes; i++)
    if (f->trees.node[i].mode == HN_TREE_LEAF && f->trees.node[i].n != 1) return false;
  return true;
}

/* The largest float that is at most (below: less than) s; NaN where there is none. */
static float at_most(double s, bool below) {
  const float f = (float)s;
  if (isnan(s) || (below && isinf(s) && s < 0)) return NAN;
  return (double)f > s || (below && (double)f >= s) ? nextafterf(f, -INFINITY) : f;
}

static short_node shorten(const hn_tree_node *n, int64_t self) {
  if (n->mode == HN_TREE_LEAF) return (short_node){0, 0, {(int32_t)self, (int32_t)self}};
  const bool turned = n->mode == HN_TREE_GTE || n->mode == HN_TREE_GT; /* not less, not at most */
  const float split = at_most(n->split, n->mode == HN_TREE_LT || n->mode == HN_TREE_GTE);
  int32_t yes = (int32_t)n->yes, no = (int32_t)n->no;
  if (isnan(n->split)) yes = no; /* no comparison holds */
  return (short_node){
      split,
      (int32_t)n->feature,
      {turned != HN_FAULT("trees_turned") ? no : yes, turned != HN_FAULT("trees_turned") ? yes : no}};
}

/* Places of the lists behind the head. */
static void arrange(const hn_tree_form *f, blob_head *h) {
  size_t at = hn_round_up(sizeof *h, 64);
  const hn_trees *t = &f->trees;
  int64_t votes = 0;
  h->members = 0;
  for (int64_t i = 0; i < t->n_nodes; i++) {
    const hn_tree_node *n = &t->node[i];
    int64_t *most = n->mode == HN_TREE_LEAF ? &votes : n->mode == HN_TREE_MEMBER ? &h->members : NULL;
    if (most && n->first + n->n > *most) *most = n->first + n->n;
  }
#define LIST(PLACE, N, TYPE) h->PLACE = at, at += hn_round_up((size_t)(N) * sizeof(TYPE), 64)
  LIST(nodes, t->n_nodes, hn_tree_node);
  LIST(roots, t->n_roots, int64_t);
  LIST(votes, votes, hn_tree_vote);
  LIST(member, h->members, double);
  LIST(base, f->finish.n_base, double);
  LIST(brief_nodes, h->brief ? t->n_nodes : 0, short_node);
  LIST(value, h->single ? t->n_nodes : 0, double);
#undef LIST
  h->bytes = at;
  h->form = *f;
}

static hone_status describe(const hone_step *s, const hn_trees_step_config *c, hn_arena *arena, blob_head *h,
                            hn_tree_form *f, hone_error *error) {
  memset(h, 0, sizeof *h);
  hone_status status = read_form(s, c, arena, f, error);
  if (status) return status;
  const hone_tensor_desc *x = &s->input[0].desc;
  h->rows = hn_features_rows(x), h->width = hn_features_width(x);
  uint8_t *state = hn_arena_raw(arena, (size_t)f->trees.n_nodes + 1, 1);
  int64_t *stack = hn_arena_raw(arena, (size_t)(f->trees.n_nodes + 1) * sizeof *stack, 8);
  if (!state || !stack) return hn_fail(error, HONE_ERROR_MEMORY, "%s: out of memory", s->anchor);
  if (!ends(&f->trees, state, stack))
    return hn_fail(error, HONE_ERROR_INPUT, "%s: trees lead in circles", s->anchor);
  h->brief = is_brief(&f->trees);
  h->single = is_single(f);
  arrange(f, h);
  return HONE_OK;
}

bool hn_trees_step_accepts(const hone_step *s, const hone_machine *m, const hn_trees_step_config *c,
                           hone_reason *why) {
  hn_arena arena = {0};
  hone_error error = {0};
  blob_head h;
  hn_tree_form f;
  (void)m;
  if (!takes(s, why)) return false;
  /* What cannot be read, and trees that lead in circles, are the reference's to refuse. */
  const bool ok = describe(s, c, &arena, &h, &f, &error) == HONE_OK;
  hn_arena_free(&arena);
  return ok || hn_refuse(why, "%.140s", error.what);
}

double hn_trees_step_cost(const hone_step *s, const hone_machine *m, const hn_trees_step_config *c) {
  size_t nodes = 0;
  (void)c;
  /* Each row visits a path of every tree: some 15 instructions a node. */
  hone_node_ints(s->node, "nodes_truenodeids", &nodes);
  const double rows = (double)hn_features_rows(&s->input[0].desc);
  return hn_step_seconds(m, rows * (double)nodes, 4 * rows, 0.5);
}

/* A thread's scores, and whose they are. */
static size_t own_bytes(const hn_trees *t) {
  return hn_round_up((size_t)(BLOCK * t->n_targets) * (sizeof(double) + sizeof(bool)), 64);
}

hone_status hn_trees_step_need(const hone_step *s, const hone_machine *m, const hn_trees_step_config *c,
                               hone_tactic_need *n, hone_error *error) {
  hn_arena arena = {0};
  blob_head h;
  hn_tree_form f;
  const hone_status status = describe(s, c, &arena, &h, &f, error);
  if (!status)
    n->blob_bytes = h.bytes,
    n->workspace_bytes =
        (own_bytes(&f.trees) + hn_round_up((size_t)h.width * sizeof(double), 64)) * m->threads;
  hn_arena_free(&arena);
  return status;
}

static void copy(unsigned char *to, const void *from, int64_t n, size_t size) {
  if (n) memcpy(to, from, (size_t)n * size);
}

hone_status hn_trees_step_prepack(const hone_step *s, const hone_machine *m, const hn_trees_step_config *c,
                                  void *blob, hone_error *error) {
  hn_arena arena = {0};
  blob_head h;
  hn_tree_form f;
  unsigned char *at = blob;
  (void)m;
  const hone_status status = describe(s, c, &arena, &h, &f, error);
  if (!status) {
    const hn_trees *t = &f.trees;
    memset(blob, 0, h.bytes);
    copy(at + h.nodes, t->node, t->n_nodes, sizeof *t->node);
    copy(at + h.roots, t->root, t->n_roots, sizeof *t->root);
    copy(at + h.member, t->member, h.members, sizeof *t->member);
    copy(at + h.base, f.finish.base, f.finish.n_base, sizeof *f.finish.base);
    short_node *brief = (short_node *)(void *)(at + h.brief_nodes);
    double *value = (double *)(void *)(at + h.value);
    for (int64_t i = 0; i < t->n_nodes; i++) {
      const hn_tree_node *n = &t->node[i];
      if (n->mode == HN_TREE_LEAF)
        copy(at + h.votes + (size_t)n->first * sizeof *t->vote, t->vote + n->first, n->n, sizeof *t->vote);
      if (h.brief) brief[i] = shorten(n, i);
      if (h.single && n->mode == HN_TREE_LEAF) value[i] = t->vote[n->first].weight;
    }
    h.form.trees.node = NULL, h.form.trees.root = NULL, h.form.trees.vote = NULL, h.form.trees.member = NULL;
    h.form.finish.base = NULL;
    memcpy(blob, &h, sizeof h);
  }
  hn_arena_free(&arena);
  return status;
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  hn_trees trees;
  hn_tree_finish finish;
  hn_labels labels;
  const short_node *brief;
  const double *value;
  int64_t block;
} job;

/* LANES walks, of any tree and row each. */
static inline void walk(const short_node *node, const float *const *x, int32_t *at) {
  int32_t moved;
  do {
    moved = 0;
    for (int i = 0; i < LANES; i++) {
      const short_node *n = &node[at[i]];
      const int32_t next = n->next[!(x[i][n->feature] <= n->split)];
      moved |= next ^ at[i];
      at[i] = next;
    }
  } while (moved);
}

static inline void count(const job *j, int32_t leaf, double *score, bool *voted) {
  if (j->value)
    *score += j->value[leaf], *voted = true;
  else
    hn_trees_vote(&j->trees, &j->trees.node[leaf], score, voted);
}

/* LANES rows through every tree. */
static void rows_together(const job *j, const float *const *x, double *score, bool *voted) {
  const int64_t n = j->trees.n_targets;
  for (int64_t r = 0; r < j->trees.n_roots; r++) {
    int32_t at[LANES];
    for (int i = 0; i < LANES; i++) at[i] = (int32_t)j->trees.root[r];
    walk(j->brief, x, at);
    for (int i = 0; i < LANES; i++) count(j, at[i], score + i * n, voted + i * n);
  }
}

/* One row through LANES trees at a time. */
static void trees_together(const job *j, const float *x, double *score, bool *voted) {
  const int64_t n = j->trees.n_roots;
  const float *same[LANES];
  for (int i = 0; i < LANES; i++) same[i] = x;
  for (int64_t r = 0; r < n; r += LANES) {
    int32_t at[LANES];
    for (int i = 0; i < LANES; i++) at[i] = (int32_t)j->trees.root[r + i < n ? r + i : n - 1];
    walk(j->brief, same, at);
    for (int i = 0; i < LANES && r + i < n; i++) count(j, at[i], score, voted);
  }
}

static bool has_nan(const float *x, int64_t n) {
  bool nan = false;
  if (HN_FAULT("trees_nan")) return false;
  for (int64_t i = 0; i < n; i++) nan |= x[i] != x[i];
  return nan;
}

static void finish_row(job *j, int64_t row, double *score, bool *voted) {
  const hone_step_run *r = j->run;
  const uint32_t scores = j->finish.classes;
  const int64_t n = j->trees.n_targets, label = hn_trees_finish(&j->trees, &j->finish, score, voted);
  if (j->finish.classes && hn_step_gives(r->step, 0)) ((int64_t *)r->out[0])[row] = j->labels.number[label];
  if (hn_step_gives(r->step, scores))
    for (int64_t i = 0; i < n; i++) ((float *)r->out[scores])[row * n + i] = (float)score[i];
}

static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const blob_head *h = j->h;
  const int64_t n = j->trees.n_targets, first = index * j->block,
                rows = h->rows - first < j->block ? h->rows - first : j->block;
  unsigned char *own = (unsigned char *)j->run->workspace +
                       (own_bytes(&j->trees) + hn_round_up((size_t)h->width * sizeof(double), 64)) * thread;
  double *sample = (double *)(void *)own,
         *score = (double *)(void *)(own + hn_round_up((size_t)h->width * sizeof(double), 64));
  bool *voted = (bool *)(score + BLOCK * n);
  const float *x = (const float *)j->run->in[0] + first * h->width, *lane[LANES];
  memset(score, 0, (size_t)(rows * n) * sizeof *score);
  memset(voted, 0, (size_t)(rows * n));
  int64_t r = 0;
  while (r < rows) {
    bool plain = j->brief && rows - r >= LANES;
    for (int i = 0; plain && i < LANES; i++)
      lane[i] = x + (r + (HN_FAULT("trees_lane") ? 0 : i)) * h->width, plain = !has_nan(lane[i], h->width);
    if (plain) {
      rows_together(j, lane, score + r * n, voted + r * n);
      r += LANES;
      continue;
    }
    const float *mine = x + r * h->width;
    if (j->brief && !has_nan(mine, h->width)) {
      trees_together(j, mine, score + r * n, voted + r * n);
    } else {
      hone_error error = {0}; /* never: walks end */
      for (int64_t i = 0; i < h->width; i++) sample[i] = (double)mine[i];
      (void)hn_trees_score(j->run->step->node, &j->trees, sample, score + r * n, voted + r * n, &error);
    }
    r++;
  }
  for (r = 0; r < rows; r++) finish_row(j, first + r, score + r * n, voted + r * n);
}

hone_status hn_trees_step_run(const hone_step_run *r, const hn_trees_step_config *c, hone_error *error) {
  const blob_head *h = r->blob;
  const unsigned char *at = r->blob;
  (void)c, (void)error;
  job j = {.run = r,
           .h = h,
           .trees = h->form.trees,
           .finish = h->form.finish,
           .labels = hn_labels_of(r->step->node, "classlabels_int64s"),
           .brief = h->brief ? (const short_node *)(const void *)(at + h->brief_nodes) : NULL,
           .value = h->single ? (const double *)(const void *)(at + h->value) : NULL};
  j.trees.node = (hn_tree_node *)(uintptr_t)(at + h->nodes);
  j.trees.root = (const int64_t *)(const void *)(at + h->roots);
  j.trees.vote = (const hn_tree_vote *)(const void *)(at + h->votes);
  j.trees.member = (const double *)(const void *)(at + h->member);
  j.finish.base = (const double *)(const void *)(at + h->base);
  /* Blocks for all threads, but of whole lanes. */
  j.block = hn_fill_up(hn_div_up(h->rows, r->threads), LANES);
  if (j.block > BLOCK) j.block = BLOCK;
  const int64_t tasks = hn_div_up(h->rows, j.block);
  /* Paths of some nodes in trees, a nanosecond each: what is over in a few microseconds needs no other
   * thread. */
  if (tasks == 1 || h->rows * j.trees.n_roots < 512)
    for (int64_t i = 0; i < tasks; i++) task(&j, i, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}
