#include "api/candidates/candidates.h"

#include "base/error.h"
#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HN_NAME_FUNCTION(hone_candidate_kind_name, hone_candidate_kind, HONE_CANDIDATE_KINDS)
HN_NAME_FUNCTION(hone_candidate_verdict_name, hone_candidate_verdict, HONE_CANDIDATE_VERDICTS)

const char *hn_candidate_say(hn_candidate_search *s, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, args);
  char *text = n < 0 ? NULL : hn_arena_alloc(s->arena, (size_t)n + 1);
  if (text) vsnprintf(text, (size_t)n + 1, format, again);
  va_end(again);
  va_end(args);
  if (!text) s->failed = true;
  return text ? text : "";
}

double hn_candidate_threshold(const hn_candidate_search *s, const char *name) {
  return hone_thresholds_get(s->thresholds, name);
}

void hn_candidate_gain(const hn_candidate_search *s, hone_candidate *c) {
  const double p = s->wall_ms > 0 && c->ms < s->wall_ms ? c->ms / s->wall_ms : s->wall_ms > 0;
  c->share_pct = 100 * p;
  c->gain_pct = c->ms > 0 && c->saved_ms > 0 ? 100 * (hone_amdahl(p, c->ms / (c->ms - c->saved_ms)) - 1) : 0;
}

bool hn_candidate_pays(const hn_candidate_search *s, const hone_candidate *c) {
  return c->gain_pct >= hn_candidate_threshold(s, "min_gain");
}

void hn_candidate_add(hn_candidate_search *s, const hone_candidate *c) {
  if (!hn_vec_push(&s->found, *c)) s->failed = true;
}

/* A constant is no node that an operator is made of. */
static bool is_named(const hn_source_node *n) { return strcmp(n->op_type, "Constant") != 0; }

bool hn_candidate_names(hn_candidate_search *s, const hone_node *const *node, uint32_t n, const int32_t *step,
                        uint32_t n_steps, hone_candidate_place *out) {
  const hn_model *m = s->plan->model;
  uint32_t most = 0;
  for (uint32_t i = 0; i < n; i++) most += node[i]->n_origin;
  const char **nodes = HN_NEW_ARRAY(s->arena, const char *, most + 1),
             **steps = HN_NEW_ARRAY(s->arena, const char *, n_steps + 1);
  *out = (hone_candidate_place){.node = nodes, .step = steps, .n_steps = n_steps};
  if (!nodes || !steps) return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < node[i]->n_origin; k++) {
      const uint32_t at = node[i]->origin[k];
      bool known = at >= m->source.len || !is_named(&m->source.ptr[at]);
      for (uint32_t j = 0; j < out->n_nodes && !known; j++)
        known = strcmp(nodes[j], m->source.ptr[at].name) == 0;
      if (!known) nodes[out->n_nodes++] = m->source.ptr[at].name;
    }
  for (uint32_t i = 0; i < n_steps; i++) steps[i] = s->plan->steps.ptr[step[i]].desc.name;
  return true;
}

static bool same_shape(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  bool same = a->rank == b->rank && a->dtype == b->dtype;
  for (int32_t i = 0; i < a->rank && same; i++) same = a->dim[i] == b->dim[i];
  return same;
}

static bool is_number(const hn_value *v) { return v->constant && hone_desc_count(&v->desc) == 1; }

bool hn_candidate_elementwise(const hone_node *const *node, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const hn_value *out = node[i]->n_out == 1 ? node[i]->out[0] : NULL;
    if (!out || out->desc.dtype != HONE_DTYPE_F32 || !node[i]->op ||
        !(node[i]->op->flags & HONE_OP_POINTWISE))
      return false;
    for (uint32_t k = 0; k < node[i]->n_in; k++)
      if (node[i]->in[k] && !is_number(node[i]->in[k]) && !same_shape(&node[i]->in[k]->desc, &out->desc))
        return false;
  }
  return n > 0;
}

static int by_worth(const void *a, const void *b) {
  const hone_candidate *x = a, *y = b;
  const bool wx = x->verdict == HONE_CANDIDATE_IS_WORTH, wy = y->verdict == HONE_CANDIDATE_IS_WORTH;
  if (wx != wy) return wx ? -1 : 1;
  const double vx = wx ? x->gain_pct : x->ms, vy = wx ? y->gain_pct : y->ms;
  return vx > vy ? -1 : vx < vy;
}

static hone_status hand_over(hn_candidate_search *s, hone_candidates *out, hone_error *error) {
  const size_t n = s->found.len;
  hone_candidate *list = HN_NEW_ARRAY(s->arena, hone_candidate, n + 1);
  if (s->failed || !list) return hn_fail_memory(error, n * sizeof *list, "candidates");
  if (n) memcpy(list, s->found.ptr, n * sizeof *list);
  if (n) qsort(list, n, sizeof *list, by_worth);
  *out = (hone_candidates){.n = (uint32_t)n, .candidate = list, .wall_ms = s->wall_ms, .impl = s->arena};
  for (size_t i = 0; i < n; i++) out->n_worth += list[i].verdict == HONE_CANDIDATE_IS_WORTH;
  return HONE_OK;
}

static hone_status check(const hone_plan *plan, const hone_model *model, const hone_profile *profile,
                         const hone_candidates *out, hone_error *error) {
  if (!plan || !model || !profile || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_candidates_find needs a plan, its model, a profile and a place for the result");
  size_t n;
  hone_facts_steps(profile->facts, &n);
  if (n != hone_plan_steps(plan) || profile->filtered)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_candidates_find: the profile is not of all steps of this plan");
  return HONE_OK;
}

hone_status hone_candidates_find(const hone_plan *plan, hone_model *model, const hone_plan_options *options,
                                 const hone_thresholds *thresholds, const hone_profile *profile,
                                 hone_candidates *out, hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  if (out) *out = (hone_candidates){0};
  hone_status status = check(plan, model, profile, out, error);
  if (status != HONE_OK) return status;
  hn_arena *arena = hn_calloc(1, sizeof *arena);
  if (!arena) return hn_fail_memory(error, sizeof *arena, "candidates");
  hn_candidate_search s = {.handle = plan,
                           .plan = hn_api_plan(plan),
                           .profile = profile,
                           .facts = profile->facts,
                           .thresholds = thresholds,
                           .arena = arena};
  if (!hn_candidate_blocks(&s)) s.failed = true;
  status = hn_other_plans_make(&s, hn_api_engine(plan), model, options, error);
  if (status == HONE_OK && !s.failed) {
    hn_find_compounds(&s);
    hn_find_fallbacks(&s);
    hn_find_misfits(&s);
  }
  if (status == HONE_OK) status = hand_over(&s, out, error);
  hn_other_plans_free(&s);
  hn_vec_free(&s.found);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK) return status;
  hn_arena_free(arena);
  hn_free(arena);
  *out = (hone_candidates){0};
  return status;
}

void hone_candidates_free(hone_candidates *c) {
  if (!c) return;
  hn_arena *arena = c->impl;
  if (arena) hn_arena_free(arena);
  hn_free(arena);
  *c = (hone_candidates){0};
}
