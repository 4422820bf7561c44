/* The plan as blocks: its steps with what was measured of them, and the views between them. */
#include "api/candidates/candidates.h"

#include "optimize/step/anchor.h"

#include <math.h>
#include <string.h>

const hn_block *hn_candidate_maker(const hn_candidate_search *s, const hn_value *v) {
  return v && v->producer && v->graph == s->plan->model->graph && s->maker[v->id] >= 0
             ? &s->block[s->maker[v->id]]
             : NULL;
}

int32_t hn_candidate_block_of(const hn_candidate_search *s, const hone_node *n) {
  for (uint32_t o = 0; n->graph == s->plan->model->graph && o < n->n_out; o++)
    if (n->out[o]) return s->maker[n->out[o]->id];
  return -1;
}

bool hn_group_has(const hn_group *p, int32_t block) {
  for (uint32_t i = 0; i < p->n; i++)
    if (block >= 0 && p->block[i] == (uint32_t)block) return true;
  return false;
}

uint32_t hn_group_nodes(const hn_candidate_search *s, const hn_group *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++) n += s->block[p->block[i]].n_nodes;
  return n;
}

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Operators of which a kernel can take several in one pass over the data, or over a row of it. What goes
 * through a tensor again and again (recurrent networks, sorting, NMS) is an operator of its own. */
static bool passes_over(const hone_node *n) {
  static const char *const types[] = {"CumSum", "ArgMax", "ArgMin", "LRN", "LpNormalization", "Mean"};
  if (!n->op ||
      n->op->flags & (HONE_OP_RANDOM | HONE_OP_DATA_DEPENDENT | HONE_OP_CONTROL | HONE_OP_SHAPE_ONLY))
    return false;
  if (n->op->flags & (HONE_OP_POINTWISE | HONE_OP_MOVE | HONE_OP_VIEW | HONE_OP_CODES)) return true;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(n->op_type, types[i]) == 0) return true;
  return strncmp(n->op_type, "Reduce", 6) == 0 || ends_with(n->op_type, "Softmax") ||
         ends_with(n->op_type, "Normalization") || ends_with(n->op_type, "Pool");
}

static bool may_join(const hn_block *b, const hn_step *step) {
  if (!b->n_nodes || b->n_nodes > HN_COMPOUND_NODES) return false;
  if (step && (step->role != HONE_STEP_COMPUTE || step->shape_work || !b->layer || b->ms <= 0 ||
               b->fact->is_reference || b->fact->is_launch))
    return false;
  for (uint32_t i = 0; i < b->n_nodes; i++)
    if (!passes_over(b->node[i]) && !b->product) return false;
  return true;
}

static bool in_block(const hn_block *b, const hone_node *n) {
  for (uint32_t i = 0; i < b->n_nodes; i++)
    if (b->node[i] == n) return true;
  return false;
}

static bool is_read_outside(const hn_block *b, const hn_value *v) {
  for (size_t u = 0; u < v->users.len; u++)
    if (!in_block(b, v->users.ptr[u].node)) return true;
  return v->is_output;
}

static const hn_value *exit_of(const hn_block *b) {
  const hn_value *found = NULL;
  for (uint32_t i = 0; i < b->n_nodes; i++)
    for (uint32_t o = 0; o < b->node[i]->n_out; o++) {
      const hn_value *v = b->node[i]->out[o];
      if (!v || !is_read_outside(b, v)) continue;
      if (found) return NULL;
      found = v;
    }
  return found;
}

static void owns(hn_candidate_search *s, uint32_t block) {
  const hn_block *b = &s->block[block];
  for (uint32_t i = 0; i < b->n_nodes; i++)
    for (uint32_t o = 0; o < b->node[i]->n_out; o++)
      if (b->node[i]->out[o] && s->maker[b->node[i]->out[o]->id] < 0)
        s->maker[b->node[i]->out[o]->id] = (int32_t)block;
}

static void add_step(hn_candidate_search *s, const hone_step_fact *facts, uint32_t k) {
  const hn_step *step = &s->plan->steps.ptr[k];
  hn_block *b = &s->block[s->n_blocks];
  if (step->role == HONE_STEP_REFORMAT || step->role == HONE_STEP_COPY || !step->n_nodes) return;
  *b = (hn_block){.step = (int32_t)k, .n_nodes = step->n_nodes, .node = step->nodes, .fact = &facts[k]};
  for (size_t i = 0; i < s->profile->layer_count; i++) {
    const hone_layer *l = &s->profile->layers[i];
    if (l->step != (int32_t)k) continue;
    if (!b->layer) b->layer = l;
    b->ms += hn_typical_ms(l);
  }
  b->product = hn_anchor_of_step(&step->desc).product != HONE_PRODUCT_NONE;
  b->member = may_join(b, step);
  b->exit = exit_of(b);
  owns(s, s->n_blocks);
  /* A node that several steps do together is no part of a pattern. */
  if (b->exit && s->maker[b->exit->id] != (int32_t)s->n_blocks) b->member = false;
  s->n_blocks++;
}

static bool add_view(hn_candidate_search *s, const hone_node *n) {
  hn_block *b = &s->block[s->n_blocks];
  const hone_node **only = hn_arena_memdup(s->arena, &n, sizeof(hone_node *));
  if (!only) return false;
  *b = (hn_block){.step = -1, .n_nodes = 1, .node = only};
  b->member = may_join(b, NULL);
  b->exit = exit_of(b);
  owns(s, s->n_blocks++);
  return true;
}

/* What lies between steps, and what a step at least takes. */
static void overheads(hn_candidate_search *s) {
  const hone_profile *p = s->profile;
  double least = INFINITY;
  for (uint32_t i = 0; i < s->n_blocks; i++)
    if (s->block[i].step >= 0 && s->block[i].ms > 0 && s->block[i].ms < least) least = s->block[i].ms;
  s->wall_ms = hn_typical_wall_ms(p);
  s->gap_ms = p->layer_count ? p->closure.typical_gaps_ms / (double)p->layer_count : 0;
  s->start_ms = s->plan->machine.threads > 1 && !s->plan->backend->asynchronous
                    ? fmin(hn_candidate_threshold(s, "step_overhead") / 1e3, least)
                    : 0;
}

bool hn_candidate_blocks(hn_candidate_search *s) {
  const hn_model *m = s->plan->model;
  size_t n;
  const hone_step_fact *facts = hone_facts_steps(s->facts, &n);
  s->block = HN_NEW_ARRAY(s->arena, hn_block, s->plan->steps.len + m->graph->n_nodes + 1);
  s->maker = HN_NEW_ARRAY(s->arena, int32_t, m->next_value_id + 1);
  if (!s->block || !s->maker) return false;
  for (uint32_t i = 0; i <= m->next_value_id; i++) s->maker[i] = -1;
  for (uint32_t k = 0; k < s->plan->steps.len; k++) add_step(s, facts, k);
  for (const hone_node *v = m->graph->first; v; v = v->next)
    if (hn_candidate_block_of(s, v) < 0 && v->op && v->op->flags & HONE_OP_VIEW && !add_view(s, v))
      return false;
  overheads(s);
  return true;
}
