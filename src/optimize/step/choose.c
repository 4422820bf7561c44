/* Which tactic a step gets: by measurement where there is one, else by the tactics' own predictions. */
#include "optimize/step/choose.h"

#include "base/error.h"
#include "optimize/step/conv_attr.h"
#include "optimize/step/tuned.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* Masks as HONE_TACTICS has them: "conv_*,-*_winograd*". Without a positive glob everything is allowed. */
static bool allowed(const hn_plan *p, const char *name) {
  bool positive = false, hit = false;
  for (uint32_t i = 0; i < p->n_masks; i++) {
    const char *m = p->masks[i];
    if (*m == '-') {
      if (fnmatch(m + 1, name, 0) == 0) return false;
    } else {
      positive = true;
      hit |= fnmatch(m, name, 0) == 0;
    }
  }
  return !positive || hit;
}

hone_status hn_plan_masks(hn_plan *p, const char *text, hone_error *error) {
  if (!text || !*text) return HONE_OK;
  uint32_t n = 1;
  for (const char *c = text; *c; c++) n += *c == ',';
  p->masks = HN_NEW_ARRAY(&p->arena, const char *, n);
  if (!p->masks) return hn_fail_memory(error, n, "tactic masks");
  while (*text) {
    size_t len = strcspn(text, ",");
    if (len && !(p->masks[p->n_masks++] = hn_arena_strndup(&p->arena, text, len)))
      return hn_fail_memory(error, len, "tactic masks");
    text += len + (text[len] == ',');
  }
  return HONE_OK;
}

uint32_t hn_accepting_tactics(const hn_plan *p, const hone_step *step, hn_candidate out[HN_MAX_CANDIDATES],
                              hn_refusals *why) {
  const hn_listing *l = p->tactics;
  uint32_t count = 0;
  hn_conv_memo memo;
  hn_conv_memo *before = hn_conv_memo_begin(&memo, step);
  for (uint32_t i = hn_listing_first(l, step->anchor); i != HN_NO_UNIT; i = l->next[i]) {
    const hone_tactic_desc *t = l->unit[i];
    hone_reason reason = {""};
    if (!allowed(p, t->name))
      hn_refuse_add(why, HONE_REFUSED_OFF, t->name, "switched off by HONE_TACTICS");
    else if (count == HN_MAX_CANDIDATES)
      hn_refuse_add(why, HONE_REFUSED_LIMIT, t->name, "too many tactics for one step");
    else if (t->accepts(step, &p->machine, &reason))
      out[count++] = (hn_candidate){t, t->cost ? t->cost(step, &p->machine) : 1e30};
    else
      hn_refuse_add(why, HONE_REFUSED_STEP, t->name, reason.text);
  }
  hn_conv_memo_end(before);
  return count;
}

const hone_tactic_desc *hn_cheapest_tactic(const hn_plan *p, const hone_step *step) {
  const hn_listing *l = p->tactics;
  const hone_tactic_desc *best = NULL;
  double least = -1; /* of `best`; below 0: not asked yet */
  for (uint32_t i = hn_listing_first(l, step->anchor); i != HN_NO_UNIT; i = l->next[i]) {
    const hone_tactic_desc *t = l->unit[i];
    hone_reason reason = {""};
    if (!allowed(p, t->name) || !t->accepts(step, &p->machine, &reason)) continue;
    if (best && least < 0) least = best->cost ? best->cost(step, &p->machine) : 1e30;
    const double seconds = !best ? -1 : t->cost ? t->cost(step, &p->machine) : 1e30;
    if (best && !(seconds < least)) continue;
    best = t;
    least = seconds;
  }
  return best;
}

bool hn_hopeless(const hn_plan *p, const hn_candidate *list, uint32_t n, uint32_t i) {
  return p->backend->asynchronous && list[i].predicted > 3 * list[hn_cheapest(list, n)].predicted;
}

/* The measurement of a step, if one exists that knows every tactic that may be chosen now, in its present
 * version, but for hopeless ones. */
static const hn_tuned_step *measured(const hn_plan *p, const char *signature, const hn_candidate *list,
                                     uint32_t n) {
  const hn_tuned_step *s = n ? hn_tuned_find(p->tuned, signature) : NULL;
  for (uint32_t i = 0; s && i < n; i++) {
    bool known = hn_hopeless(p, list, n, i);
    for (uint32_t k = 0; k < s->n; k++)
      known |= s->timing[k].version == list[i].tactic->version &&
               strcmp(s->timing[k].tactic, list[i].tactic->name) == 0;
    if (!known) return NULL;
  }
  return s;
}

static const hone_tactic_desc *find(const hn_candidate *list, uint32_t n, const hn_timing *t) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i].tactic->version == t->version && strcmp(list[i].tactic->name, t->tactic) == 0)
      return list[i].tactic;
  return NULL;
}

/* What was chosen by measurement, or the fastest of those that are left when that one may not be used. */
static const hn_timing *pick(const hn_tuned_step *s, const hn_candidate *list, uint32_t n) {
  const hn_timing *best = &s->timing[s->chosen];
  if (find(list, n, best)) return best;
  best = NULL;
  for (uint32_t k = 0; k < s->n; k++)
    if (!s->timing[k].differs && find(list, n, &s->timing[k]) &&
        (!best || s->timing[k].seconds < best->seconds))
      best = &s->timing[k];
  return best;
}

uint32_t hn_cheapest(const hn_candidate *list, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++)
    if (list[i].predicted < list[best].predicted) best = i;
  return best;
}

/* When memory is preferred: keeps those whose blobs are at most an eighth above the smallest (the same
 * weights in other panels), of which the usual rules choose. */
static uint32_t affordable(const hn_plan *p, const hone_step *step, hn_candidate *list, uint32_t n) {
  size_t bytes[HN_MAX_CANDIDATES], least = SIZE_MAX;
  if (!p->prefer_memory || n < 2) return n;
  for (uint32_t i = 0; i < n; i++) {
    hone_tactic_need need = {0};
    bool known = !list[i].tactic->need || list[i].tactic->need(step, &p->machine, &need, NULL) == HONE_OK;
    bytes[i] = known ? need.blob_bytes : SIZE_MAX;
    if (bytes[i] < least) least = bytes[i];
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++)
    if (bytes[i] <= least + least / 8 + HN_SMALL_CONSTANT) list[kept++] = list[i];
  return kept;
}

/* Notes what was chosen, for a plan that may be saved. */
static const hone_tactic_desc *decide(const hn_plan *p, const hone_tactic_desc *tactic,
                                      const hn_estimate *e) {
  hn_decisions *d = p->decisions;
  if (d && !d->failed && !hn_vec_push(&d->list, (hn_decision){tactic, *e})) d->failed = true;
  return tactic;
}

/* The recorded tactic of the next call. */
static const hone_tactic_desc *follow(const hn_plan *p, const hone_step *step, hn_estimate *estimate) {
  hn_decisions *d = p->follow;
  hone_reason why;
  *estimate = (hn_estimate){0};
  if (d->broken) return NULL;
  if (d->at == d->list.len) {
    d->broken = "it asks for more decisions than there are";
    return NULL;
  }
  const hn_decision *k = &d->list.ptr[d->at++];
  if (k->tactic &&
      (strcmp(k->tactic->anchor, step->anchor) != 0 || !k->tactic->accepts(step, &p->machine, &why)))
    d->broken = "a tactic refuses its step";
  if (d->broken) return NULL;
  *estimate = k->estimate;
  return k->tactic;
}

const hone_tactic_desc *hn_choose_tactic(const hn_plan *p, const hone_step *step, hn_estimate *estimate,
                                         hn_refusals *why) {
  if (p->follow) return follow(p, step, estimate);
  hn_candidate list[HN_MAX_CANDIDATES];
  uint32_t n = affordable(p, step, list, hn_accepting_tactics(p, step, list, why));
  *estimate = (hn_estimate){0};
  if (!n) return decide(p, NULL, estimate);
  const hn_timing *t = NULL;
  if (p->tuned && hn_tuned_count(p->tuned)) {
    hn_str signature = {0};
    hn_step_signature(step, &signature);
    const hn_tuned_step *s = signature.failed ? NULL : measured(p, signature.ptr, list, n);
    t = s ? pick(s, list, n) : NULL;
    hn_str_free(&signature);
  }
  const hn_candidate *best = &list[hn_cheapest(list, n)];
  *estimate = (hn_estimate){t ? t->seconds : best->predicted, best->predicted, t != NULL};
  return decide(p, t ? find(list, n, t) : best->tactic, estimate);
}

const hone_tactic_desc *hn_any_tactic(const hn_plan *p, const hone_step *step, hn_estimate *estimate) {
  if (p->follow) return follow(p, step, estimate);
  const hn_listing *l = p->tactics;
  const hone_tactic_desc *found = NULL;
  hn_conv_memo memo;
  hn_conv_memo *before = hn_conv_memo_begin(&memo, step);
  for (uint32_t i = hn_listing_first(l, step->anchor); i != HN_NO_UNIT && !found; i = l->next[i]) {
    const hone_tactic_desc *t = l->unit[i];
    hone_reason reason = {""}; /* plugins may count on a place for it */
    if (allowed(p, t->name) && t->accepts(step, &p->machine, &reason)) found = t;
  }
  hn_conv_memo_end(before);
  *estimate = (hn_estimate){0};
  return decide(p, found, estimate);
}

hone_status hn_plan_settle(hn_plan *p, hone_error *error) {
  hn_str signature = {0};
  hone_status status = HONE_OK;
  for (size_t i = 0; i < p->steps.len && status == HONE_OK; i++) {
    hn_step *s = &p->steps.ptr[i];
    if (s->kind != HN_STEP_TACTIC) continue;
    hn_str_clear(&signature);
    hn_step_signature(&s->desc, &signature);
    s->signature = signature.failed ? NULL : hn_arena_strdup(&p->arena, signature.ptr);
    if (!s->signature) status = hn_fail_memory(error, signature.len, "a step");
    if (status != HONE_OK || !p->tuned || !hn_tuned_find(p->tuned, s->signature)) continue;
    hn_candidate list[HN_MAX_CANDIDATES];
    uint32_t n = affordable(p, &s->desc, list, hn_accepting_tactics(p, &s->desc, list, NULL));
    const hn_tuned_step *m = measured(p, s->signature, list, n);
    const hn_timing *t = m ? pick(m, list, n) : NULL;
    if (!t) continue;
    s->tactic = find(list, n, t);
    s->predicted_s = t->seconds;
    s->tuned = true;
    s->threads = t->threads;
  }
  hn_str_free(&signature);
  return status;
}
