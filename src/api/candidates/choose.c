/* Which of the many groups are worth a line: form by form, the one that saves most first; a step that is part
 * of a chosen one counts for no other. */
#include "api/candidates/candidates.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FORMS = 10 };

typedef struct chooser {
  hn_candidate_search *search;
  hn_compounds all;
  bool *taken;        /* [n_blocks] by forms that were chosen */
  uint32_t *stamp;    /* [n_blocks] the last form that had it in this round, + 1 */
  double *saved, *ms; /* [forms] */
  uint32_t *count;
  bool *refused; /* [forms] chosen, or of no use */
} chooser;

/* Places of one form stand together, those that save most first. */
static int by_form(const void *a, const void *b) {
  const hn_group *x = a, *y = b;
  if (x->form != y->form) return x->form < y->form ? -1 : 1;
  if (x->saving.saved_ms != y->saving.saved_ms) return x->saving.saved_ms > y->saving.saved_ms ? -1 : 1;
  return x->block[0] < y->block[0] ? -1 : x->block[0] > y->block[0];
}

static bool open_to(const chooser *c, const hn_group *p, uint32_t mark) {
  for (uint32_t i = 0; i < p->n; i++)
    if (c->taken[p->block[i]] || c->stamp[p->block[i]] == mark) return false;
  return true;
}

static void take(const chooser *c, const hn_group *p, uint32_t mark) {
  for (uint32_t i = 0; i < p->n; i++) c->stamp[p->block[i]] = mark;
}

/* What each form would save with the steps that are still free. */
static void count_forms(chooser *c) {
  const size_t n = c->all.forms.len;
  memset(c->stamp, 0, c->search->n_blocks * sizeof *c->stamp);
  memset(c->saved, 0, n * sizeof *c->saved);
  memset(c->ms, 0, n * sizeof *c->ms);
  memset(c->count, 0, n * sizeof *c->count);
  for (size_t i = 0; i < c->all.places.len; i++) {
    const hn_group *p = &c->all.places.ptr[i];
    if (c->refused[p->form] || !open_to(c, p, p->form + 1)) continue;
    take(c, p, p->form + 1);
    c->saved[p->form] += p->saving.saved_ms;
    c->ms[p->form] += p->saving.ms;
    c->count[p->form]++;
  }
}

/* A form that occurs once is no habit of the network: it must pay by itself. */
static bool counts(const chooser *c, size_t form) {
  if (c->refused[form] || !c->count[form]) return false;
  hone_candidate trial = {.ms = c->ms[form], .saved_ms = c->saved[form]};
  hn_candidate_gain(c->search, &trial);
  return c->count[form] > 1 || hn_candidate_pays(c->search, &trial);
}

static int64_t best_form(const chooser *c) {
  int64_t best = -1;
  for (size_t i = 0; i < c->all.forms.len; i++)
    if (counts(c, i) && (best < 0 || c->saved[i] > c->saved[best] ||
                         (c->saved[i] >= c->saved[best] && c->ms[i] > c->ms[best])))
      best = (int64_t)i;
  return best;
}

static const char *step_name(const hn_candidate_search *s, const hn_block *b) {
  return s->plan->steps.ptr[b->step].desc.name;
}

/* The step of the place that computes, and so gains nothing by fewer bytes. */
static const hn_block *computing(const hn_candidate_search *s, const hn_group *p) {
  const hn_block *found = NULL;
  for (uint32_t i = 0; i < p->n; i++) {
    const hn_block *b = &s->block[p->block[i]];
    if (b->step >= 0 && b->layer->bound == HONE_LIMIT_COMPUTE && (!found || b->ms > found->ms)) found = b;
  }
  return found;
}

static void judge(hn_candidate_search *s, const hn_group *p, double all_bytes, hone_candidate *c) {
  uint32_t steps = 0;
  const hn_other_plan *other = hn_other_fuses(s, p, &steps);
  const hn_block *busy = computing(s, p);
  const char *installed = hn_installed_misses(s, p);
  c->level = -1;
  if (installed) {
    c->verdict = HONE_CANDIDATE_IS_EXISTING;
    c->why = installed;
  } else if (other) {
    c->verdict = HONE_CANDIDATE_IS_EXISTING;
    c->level = other->same_level ? -1 : other->level;
    c->why = hn_candidate_say(s, "%s makes %u step%s of these %u", hn_other_words(s, other), steps,
                              steps == 1 ? "" : "s", p->saving.steps);
  } else if (hn_candidate_pays(s, c)) {
    c->verdict = HONE_CANDIDATE_IS_WORTH;
    c->why = hn_candidate_say(s, "%u steps would be one", p->saving.steps);
  } else if (busy && c->bytes < all_bytes / 2) {
    c->verdict = HONE_CANDIDATE_IS_BOUND;
    c->why = hn_candidate_say(s, "'%s' is limited by its arithmetic, not by what lies between the nodes",
                              step_name(s, busy));
  } else if (p->saving.at_roof) {
    c->verdict = HONE_CANDIDATE_IS_ROOF;
    c->why = "its steps are about as fast as one kernel could be on this machine";
  } else {
    c->verdict = HONE_CANDIDATE_IS_SMALL;
    c->why = hn_candidate_say(s, "the whole would gain %.2g %%, less than %g %%", c->gain_pct,
                              hn_candidate_threshold(s, "min_gain"));
  }
}

static bool name_place(hn_candidate_search *s, const hn_group *p, hone_candidate_place *out) {
  hn_spelling spelling;
  int32_t step[HN_COMPOUND_NODES];
  uint32_t n = 0;
  for (uint32_t i = p->n; i-- > 0;)
    if (s->block[p->block[i]].step >= 0) step[n++] = s->block[p->block[i]].step;
  if (!hn_group_spell(s, p, s->arena, &spelling) ||
      !hn_candidate_names(s, spelling.node, spelling.n_nodes, step, n, out))
    return false;
  out->ms = p->saving.ms;
  out->saved_ms = p->saving.saved_ms;
  return true;
}

static bool is_elementwise(const hn_candidate_search *s, const hn_group *p) {
  for (uint32_t i = 0; i < p->n; i++)
    if (!hn_candidate_elementwise(s->block[p->block[i]].node, s->block[p->block[i]].n_nodes)) return false;
  return true;
}

static int by_time(const void *a, const void *b) {
  const hone_candidate_place *x = a, *y = b;
  return x->ms > y->ms ? -1 : x->ms < y->ms;
}

static void add_form(chooser *c, uint32_t form) {
  hn_candidate_search *s = c->search;
  const hn_form *f = &c->all.forms.ptr[form];
  hone_candidate_place *place = HN_NEW_ARRAY(s->arena, hone_candidate_place, c->count[form]);
  hone_candidate found = {.kind = HONE_CANDIDATE_COMPOUND,
                          .name = f->name,
                          .operators = f->operators,
                          .pattern = f->pattern,
                          .place = place};
  const hn_group *slowest = NULL;
  double all_bytes = 0;
  const uint32_t mark = (uint32_t)c->all.forms.len + 1;
  for (size_t i = 0; place && i < c->all.places.len && found.n_places < c->count[form]; i++) {
    const hn_group *p = &c->all.places.ptr[i];
    if (p->form != form || !open_to(c, p, mark)) continue;
    take(c, p, mark);
    if (!name_place(s, p, &place[found.n_places++])) s->failed = true;
    if (!slowest || p->saving.ms > slowest->saving.ms) slowest = p;
    found.ms += p->saving.ms;
    found.bytes += p->saving.bytes;
    all_bytes += p->saving.all_bytes;
    found.traffic_ms += p->saving.traffic_ms;
    found.starts_ms += p->saving.starts_ms;
    found.saved_ms += p->saving.saved_ms;
  }
  if (!slowest) {
    s->failed = true;
    return;
  }
  for (uint32_t i = 0; i < s->n_blocks; i++) c->taken[i] = c->taken[i] || c->stamp[i] == mark;
  qsort(place, found.n_places, sizeof *place, by_time);
  found.elementwise = is_elementwise(s, slowest);
  hn_candidate_gain(s, &found);
  judge(s, slowest, all_bytes, &found);
  hn_candidate_add(s, &found);
}

static bool make_room(chooser *c) {
  hn_arena *a = c->search->arena;
  c->taken = HN_NEW_ARRAY(a, bool, c->search->n_blocks + 1);
  c->stamp = HN_NEW_ARRAY(a, uint32_t, c->search->n_blocks + 1);
  c->saved = HN_NEW_ARRAY(a, double, c->all.forms.len + 1);
  c->ms = HN_NEW_ARRAY(a, double, c->all.forms.len + 1);
  c->count = HN_NEW_ARRAY(a, uint32_t, c->all.forms.len + 1);
  c->refused = HN_NEW_ARRAY(a, bool, c->all.forms.len + 1);
  return c->taken && c->stamp && c->saved && c->ms && c->count && c->refused;
}

void hn_find_compounds(hn_candidate_search *s) {
  chooser c = {.search = s};
  if (!hn_compounds_list(s, &c.all) || !make_room(&c)) s->failed = true;
  if (!s->failed && c.all.places.len)
    qsort(c.all.places.ptr, c.all.places.len, sizeof *c.all.places.ptr, by_form);
  for (int i = 0; i < MOST_FORMS && !s->failed && c.all.places.len; i++) {
    count_forms(&c);
    const int64_t best = best_form(&c);
    if (best < 0) break;
    memset(c.stamp, 0, s->n_blocks * sizeof *c.stamp);
    add_form(&c, (uint32_t)best);
    c.refused[best] = true;
  }
  hn_vec_free(&c.all.places);
  hn_vec_free(&c.all.forms);
}
