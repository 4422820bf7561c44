/* Single operators: those without a fast kernel, and kernels that do not fit the sizes. */
#include "api/candidates/candidates.h"

#include "base/quantile.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_PEERS = 2 };
#define PLAIN_KERNEL 50.0 /* % of the roof: vectorised, not tuned */
#define SCALAR_FACTOR 4.0 /* one vector of 8 lanes at half efficiency against scalar code */
#define FAR_BELOW 0.5     /* of what the others of its kind reach */

typedef struct group {
  const char *type; /* of operator */
  uint32_t n;
  uint32_t *block; /* [n] slowest first */
  double left_ms;  /* with a kernel of its own */
  hone_candidate c;
} group;

/* "OwnCumSum" */
static const char *own_name(hn_candidate_search *s, const char *type) {
  char name[64] = "Own";
  size_t n = strlen(name);
  for (const char *c = type; *c && n + 1 < sizeof name; c++)
    if (isalnum((unsigned char)*c)) name[n++] = *c;
  name[n] = 0;
  return hn_candidate_say(s, "%s", name);
}

static const char *type_of(const hn_block *b) {
  return b->fact->op_type ? b->fact->op_type : b->node[0]->op_type;
}

static bool add_place(hn_candidate_search *s, const hn_block *b, double ms, double left_ms,
                      hone_candidate_place *out) {
  if (!hn_candidate_names(s, b->node, b->n_nodes, &b->step, 1, out)) return false;
  out->ms = ms;
  out->saved_ms = ms - left_ms;
  return true;
}

/* Copies of an accelerator's plan that are there for a step on the host. Each is counted once. */
static double copies_of(const hn_candidate_search *s, const hn_block *b, bool *counted) {
  const hn_plan *p = s->plan;
  const hn_step *step = &p->steps.ptr[b->step];
  double ms = 0;
  for (size_t i = 0; i < s->profile->layer_count; i++) {
    const hone_layer *l = &s->profile->layers[i];
    const hn_step *copy = l->step >= 0 && (size_t)l->step < p->steps.len ? &p->steps.ptr[l->step] : NULL;
    if (!copy || copy->kind != HN_STEP_COPY || counted[i]) continue;
    bool near = false;
    for (uint32_t k = 0; k < step->desc.n_inputs; k++)
      near = near || (step->in[k] != HN_NO_SLOT && copy->out[0] != HN_NO_SLOT &&
                      hn_slot_root(p, step->in[k]) == hn_slot_root(p, copy->out[0]));
    for (uint32_t k = 0; k < step->desc.n_outputs; k++)
      near = near || (step->out[k] != HN_NO_SLOT && copy->in[0] != HN_NO_SLOT &&
                      hn_slot_root(p, step->out[k]) == hn_slot_root(p, copy->in[0]));
    if (!near) continue;
    counted[i] = true;
    ms += hn_typical_ms(l);
  }
  return ms;
}

static const char *switched_off(const hn_step *step) {
  for (uint32_t i = 0; i < step->n_refused; i++)
    if (step->refused[i].why == HONE_REFUSED_OFF) return step->refused[i].by;
  return NULL;
}

static const char *refusal(const hn_step *step) {
  for (uint32_t i = 0; i < step->n_refused; i++)
    if (step->refused[i].why == HONE_REFUSED_STEP) return step->refused[i].text;
  return NULL;
}

static void small(hn_candidate_search *s, hone_candidate *c) {
  c->verdict = HONE_CANDIDATE_IS_SMALL;
  c->why = hn_candidate_say(s, "the whole would gain %.2g %%, less than %g %%", c->gain_pct,
                            hn_candidate_threshold(s, "min_gain"));
}

static void is_off(hn_candidate_search *s, const char *tactic, hone_candidate *c) {
  c->verdict = HONE_CANDIDATE_IS_EXISTING;
  c->why = hn_candidate_say(s, "hone's kernel '%s' takes it, and is switched off (HONE_TACTICS)", tactic);
}

/* An installed operator is for this step. */
static bool is_installed(hn_candidate_search *s, const hn_block *b, hone_candidate *c) {
  const char *why = hn_installed_misses(s, &(hn_group){.n = 1, .block = {(uint32_t)(b - s->block)}});
  if (!why) return false;
  c->verdict = HONE_CANDIDATE_IS_EXISTING;
  c->why = why;
  return true;
}

static void judge_fallback(hn_candidate_search *s, const hn_block *b, hone_candidate *c) {
  const hn_step *step = &s->plan->steps.ptr[b->step];
  const hn_other_plan *other = hn_other_takes(s, step);
  const char *off = switched_off(step), *why = refusal(step);
  const bool host = s->plan->backend->asynchronous;
  if (is_installed(s, b, c)) return;
  if (off) {
    is_off(s, off, c);
  } else if (other) {
    c->verdict = HONE_CANDIDATE_IS_EXISTING;
    c->level = other->same_level ? -1 : other->level;
    c->why = hn_candidate_say(s, "%s has a kernel for it", hn_other_words(s, other));
  } else if (!hn_candidate_pays(s, c)) {
    small(s, c);
  } else {
    c->verdict = HONE_CANDIDATE_IS_WORTH;
    c->why = hn_candidate_say(s, "it runs by its scalar reference%s%s%s", host ? " on the host" : "",
                              why ? ": " : ", as no kernel is there for it", why ? why : "");
  }
}

static bool is_fallback(const hn_candidate_search *s, const hn_block *b) {
  return b->step >= 0 && b->fact->is_reference && b->layer && b->ms > 0 && !s->plan->reference;
}

static bool slower(const hn_candidate_search *s, uint32_t a, uint32_t b) {
  return s->block[a].ms > s->block[b].ms;
}

static void add_member(const hn_candidate_search *s, group *g, uint32_t block) {
  uint32_t at = g->n++;
  for (; at > 0 && slower(s, block, g->block[at - 1]); at--) g->block[at] = g->block[at - 1];
  g->block[at] = block;
}

static bool begin(hn_candidate_search *s, group *g, hone_candidate_kind kind, const hn_block *b) {
  const char *what = b->fact->epilogue; /* "Conv + Relu" */
  *g = (group){.type = type_of(b),
               .block = HN_NEW_ARRAY(s->arena, uint32_t, s->n_blocks + 1),
               .c = {.kind = kind,
                     .level = -1,
                     .operators = kind == HONE_CANDIDATE_MISFIT && what && *what ? what : type_of(b),
                     .name = own_name(s, type_of(b))}};
  if (!g->block) s->failed = true;
  return !s->failed;
}

/* With a kernel of its own. On the processor never better than vectors and threads make scalar code. */
static double plain_ms(const hn_candidate_search *s, const hn_block *b) {
  const hone_machine *m = &s->plan->machine;
  const hone_step *desc = &s->plan->steps.ptr[b->step].desc;
  double ms = hn_roof_ms(s->facts, b->layer, PLAIN_KERNEL, s->start_ms * 1e3);
  if (ms >= b->ms && !hn_has_roof(s->facts, b->layer)) ms = b->ms / SCALAR_FACTOR;
  if (!s->plan->backend->asynchronous && desc->n_outputs) {
    const double vector = m->isa & HONE_ISA_AVX512 ? 64
                          : m->isa & HONE_ISA_AVX2 ? 32
                                                   : 16,
                 lanes = vector / fmax((double)hone_dtype_size(desc->output[0].desc.dtype), 1);
    ms = fmax(ms, b->ms / (lanes * m->threads));
  }
  return fmin(ms, b->ms);
}

static void finish_fallback(hn_candidate_search *s, group *g, bool *counted) {
  hone_candidate_place *place = HN_NEW_ARRAY(s->arena, hone_candidate_place, g->n);
  for (uint32_t i = 0; place && i < g->n; i++) {
    const hn_block *b = &s->block[g->block[i]];
    const double copies = copies_of(s, b, counted);
    const double left = plain_ms(s, b);
    if (!add_place(s, b, b->ms + copies, left, &place[i])) s->failed = true;
    g->c.ms += b->ms + copies;
    g->c.copies_ms += copies;
    g->c.saved_ms += b->ms + copies - left;
  }
  if (!place) {
    s->failed = true;
    return;
  }
  g->c.place = place;
  g->c.n_places = g->n;
  hn_candidate_gain(s, &g->c);
  g->c.elementwise = hn_candidate_elementwise(s->block[g->block[0]].node, s->block[g->block[0]].n_nodes);
  judge_fallback(s, &s->block[g->block[0]], &g->c);
  hn_candidate_add(s, &g->c);
}

void hn_find_fallbacks(hn_candidate_search *s) {
  bool *done = HN_NEW_ARRAY(s->arena, bool, s->n_blocks + 1),
       *counted = HN_NEW_ARRAY(s->arena, bool, s->profile->layer_count + 1);
  if (!done || !counted) s->failed = true;
  for (uint32_t i = 0; i < s->n_blocks && !s->failed; i++) {
    group g;
    if (done[i] || !is_fallback(s, &s->block[i]) || !begin(s, &g, HONE_CANDIDATE_FALLBACK, &s->block[i]))
      continue;
    for (uint32_t k = i; k < s->n_blocks; k++) {
      if (done[k] || !is_fallback(s, &s->block[k]) || strcmp(type_of(&s->block[k]), g.type) != 0) continue;
      done[k] = true;
      add_member(s, &g, k);
    }
    finish_fallback(s, &g, counted);
  }
}

/* ---- kernels that do not fit */

static bool has_share(const hn_block *b) {
  return b->step >= 0 && b->layer && b->ms > 0 && b->layer->roof_pct > 0 && !b->fact->is_reference &&
         !b->fact->is_launch;
}

static bool same(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

/* Of the same operator, kernel and sizes. */
static bool equal_steps(const hn_block *a, const hn_block *b) {
  return same(type_of(a), type_of(b)) && same(a->fact->tactic, b->fact->tactic) &&
         same(a->fact->shape_in, b->fact->shape_in) && same(a->fact->shape_out, b->fact->shape_out);
}

/* A convolution of groups of channels is another algorithm than one of all. */
static bool is_grouped(const hn_candidate_search *s, const hn_block *b) {
  const hone_node *n = s->plan->steps.ptr[b->step].desc.node;
  return n && hone_node_int(n, "group", 1) > 1;
}

/* Of the same operator, and limited by the same where nothing else limits them. */
static bool same_kind(const hn_candidate_search *s, const hn_block *a, const hn_block *b) {
  return same(type_of(a), type_of(b)) && a->layer->ridge == b->layer->ridge &&
         is_grouped(s, a) == is_grouped(s, b);
}

/* Median share of the roof of the other steps of its kind; 0: there are too few. */
static double usual_share(hn_candidate_search *s, const hn_block *b) {
  double *share = HN_NEW_ARRAY(s->arena, double, s->n_blocks + 1);
  size_t n = 0;
  for (uint32_t i = 0; share && i < s->n_blocks; i++)
    if (has_share(&s->block[i]) && same_kind(s, &s->block[i], b) && !equal_steps(&s->block[i], b))
      share[n++] = s->block[i].layer->roof_pct;
  if (!share) s->failed = true;
  if (n < LEAST_PEERS) return 0;
  hn_ascend(share, n);
  return hn_median(share, n);
}

static void judge_misfit(hn_candidate_search *s, const hn_block *b, hone_candidate *c) {
  const hn_step *step = &s->plan->steps.ptr[b->step];
  const hn_other_plan *other = hn_other_differs(s, step);
  const char *off = switched_off(step);
  if (is_installed(s, b, c)) return;
  if (off) {
    is_off(s, off, c);
  } else if (other) {
    c->verdict = HONE_CANDIDATE_IS_EXISTING;
    c->level = other->same_level ? -1 : other->level;
    c->why = hn_candidate_say(s, "%s does it by another kernel or as part of another step",
                              hn_other_words(s, other));
  } else if (!hn_candidate_pays(s, c)) {
    small(s, c);
  } else {
    c->verdict = HONE_CANDIDATE_IS_WORTH;
    c->why = hn_candidate_say(
        s, "its kernel '%s' reaches %.0f %% of the roof at these sizes, others of its kind %.0f %%%s",
        b->fact->tactic ? b->fact->tactic : "?", c->roof_pct, c->usual_pct,
        step->tuned ? "" : "; try `hone tune` first, which may find a better one");
  }
}

static void finish_misfit(hn_candidate_search *s, group *g) {
  hone_candidate_place *place = HN_NEW_ARRAY(s->arena, hone_candidate_place, g->n);
  for (uint32_t i = 0; place && i < g->n; i++) {
    const hn_block *b = &s->block[g->block[i]];
    const double left = hn_roof_ms(s->facts, b->layer, g->c.usual_pct, s->start_ms * 1e3);
    if (!add_place(s, b, b->ms, fmin(left, b->ms), &place[i])) s->failed = true;
    g->c.ms += b->ms;
    g->c.saved_ms += b->ms - fmin(left, b->ms);
  }
  if (!place) {
    s->failed = true;
    return;
  }
  g->c.place = place;
  g->c.n_places = g->n;
  g->c.roof_pct = s->block[g->block[0]].layer->roof_pct;
  hn_candidate_gain(s, &g->c);
  if (g->c.share_pct < hn_candidate_threshold(s, "min_gain")) return; /* it could not matter */
  g->c.elementwise = hn_candidate_elementwise(s->block[g->block[0]].node, s->block[g->block[0]].n_nodes);
  judge_misfit(s, &s->block[g->block[0]], &g->c);
  hn_candidate_add(s, &g->c);
}

void hn_find_misfits(hn_candidate_search *s) {
  bool *done = HN_NEW_ARRAY(s->arena, bool, s->n_blocks + 1);
  if (!done) s->failed = true;
  for (uint32_t i = 0; i < s->n_blocks && !s->failed; i++) {
    const hn_block *b = &s->block[i];
    group g;
    if (done[i] || !has_share(b) || b->layer->roof_pct >= hn_candidate_threshold(s, "roof_far")) continue;
    const double usual = usual_share(s, b);
    if (b->layer->roof_pct >= FAR_BELOW * usual || !begin(s, &g, HONE_CANDIDATE_MISFIT, b)) continue;
    g.c.usual_pct = usual;
    for (uint32_t k = i; k < s->n_blocks; k++) {
      if (done[k] || !has_share(&s->block[k]) || !equal_steps(b, &s->block[k])) continue;
      done[k] = true;
      add_member(s, &g, k);
    }
    finish_misfit(s, &g);
  }
}
