/* Other plans of the model, only looked at: what hone could do already. */
#include "api/candidates/candidates.h"

#include "base/error.h"

#include <string.h>

/* Options that keep hone from what this level can do. */
static bool is_restricted(const hone_plan_options *o) {
  return o->passes || o->separate || o->chains == HONE_CHAINS_NEVER;
}

static hone_status add(hn_candidate_search *s, hone_engine *engine, hone_model *model,
                       const hone_plan_options *options, int level, hone_error *error) {
  hone_plan_options o = *options;
  hone_error own = {0};
  hn_other_plan *to = &s->other[s->n_others];
  o.level = level;
  o.preview = true;
  o.passes = NULL;
  o.separate = false;
  o.chains = HONE_CHAINS_FASTER;
  o.reference = false;
  *to = (hn_other_plan){.level = level, .same_level = level == s->plan->level};
  const hone_status status = hone_plan_create(engine, model, &o, &to->plan, &own);
  if (status == HONE_OK) s->n_others++;
  if (status != HONE_ERROR_MEMORY) return HONE_OK; /* a level that cannot be planned is no help */
  if (error) *error = own;
  return status;
}

hone_status hn_other_plans_make(hn_candidate_search *s, hone_engine *engine, hone_model *model,
                                const hone_plan_options *options, hone_error *error) {
  const hone_plan_options plain = {.level = s->plan->level}, *o = options ? options : &plain;
  const int from = s->plan->level + !is_restricted(o);
  hone_status status = HONE_OK;
  for (int level = from > 1 ? from : 1; level <= 3 && status == HONE_OK; level++)
    status = add(s, engine, model, o, level, error);
  return status;
}

void hn_other_plans_free(hn_candidate_search *s) {
  for (uint32_t i = 0; i < s->n_others; i++) hone_plan_destroy(s->other[i].plan);
  s->n_others = 0;
}

/* How many nodes of the place the miss is about. */
static uint32_t shared_nodes(const hn_candidate_search *s, const hn_group *p, const hn_miss *miss) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const hn_block *b = &s->block[p->block[i]];
    for (uint32_t k = 0; k < b->n_nodes; k++)
      for (uint32_t j = 0; j < miss->n_nodes; j++) n += miss->node[j] == b->node[k];
  }
  return n;
}

const char *hn_installed_misses(hn_candidate_search *s, const hn_group *p) {
  char why[200];
  for (size_t i = 0; i < s->plan->misses.list.len; i++) {
    const hn_miss *miss = &s->plan->misses.list.ptr[i];
    const uint32_t n = shared_nodes(s, p, miss);
    if (miss->fusion != HN_FUSION_custom || (n != miss->n_nodes && n != hn_group_nodes(s, p))) continue;
    hn_miss_say(miss, why, sizeof why);
    return hn_candidate_say(s, "an installed operator is for these nodes, and does not take them: %s", why);
  }
  return NULL;
}

typedef struct step_set {
  uint32_t n;
  int32_t step[64];
} step_set;

static void insert(step_set *set, int32_t step) {
  for (uint32_t i = 0; i < set->n; i++)
    if (set->step[i] == step) return;
  if (set->n < sizeof set->step / sizeof *set->step) set->step[set->n++] = step;
}

static uint32_t steps_in(const hn_candidate_search *s, const hn_plan *p, const hn_group *place) {
  step_set set = {0};
  for (uint32_t i = 0; i < place->n; i++) {
    const hn_block *b = &s->block[place->block[i]];
    for (uint32_t k = 0; k < b->n_nodes; k++)
      for (uint32_t j = 0; j < b->node[k]->n_origin; j++) {
        const uint32_t at = b->node[k]->origin[j];
        if (at < p->model->source.len && p->node_step[at] >= 0) insert(&set, p->node_step[at]);
      }
  }
  return set.n;
}

const hn_other_plan *hn_other_fuses(const hn_candidate_search *s, const hn_group *p, uint32_t *steps) {
  for (uint32_t i = 0; i < s->n_others; i++) {
    *steps = steps_in(s, hn_api_plan(s->other[i].plan), p);
    if (*steps && *steps < p->saving.steps) return &s->other[i];
  }
  return NULL;
}

/* The step of that plan which does the node of the file; NULL: none. */
static const hn_step *doer(const hn_plan *p, uint32_t source) {
  const int32_t by = source < p->model->source.len ? p->node_step[source] : -1;
  return by >= 0 ? &p->steps.ptr[by] : NULL;
}

const hn_other_plan *hn_other_takes(const hn_candidate_search *s, const hn_step *step) {
  for (uint32_t i = 0; i < s->n_others; i++) {
    bool all = step->n_origin > 0;
    for (uint32_t j = 0; j < step->n_origin && all; j++) {
      const hn_step *by = doer(hn_api_plan(s->other[i].plan), step->origin[j]);
      all = by && by->tactic;
    }
    if (all) return &s->other[i];
  }
  return NULL;
}

const hn_other_plan *hn_other_differs(const hn_candidate_search *s, const hn_step *step) {
  for (uint32_t i = 0; i < s->n_others && step->n_origin; i++) {
    const hn_step *by = doer(hn_api_plan(s->other[i].plan), step->origin[0]);
    if (by && by->tactic && (by->tactic != step->tactic || by->n_origin > step->n_origin))
      return &s->other[i];
  }
  return NULL;
}

const char *hn_other_words(hn_candidate_search *s, const hn_other_plan *other) {
  return other->same_level ? "hone without the passes and fusions that are switched off"
                           : hn_candidate_say(s, "hone at --level %d", other->level);
}
