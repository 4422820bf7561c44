/* Steps in an order in which an accelerator's host waits seldom.
 *
 * Lowering lists steps as the graph lists its nodes: a detector's classes one after the other, each with a
 * count that the host must have before it knows the shapes of what follows. Here all that needs no answer of
 * the device comes first, then all that needs one, and so on: the host waits once for the counts of all
 * classes, and what is captured in between is few pieces instead of many. Among steps between the same waits
 * captured ones come first, as far as what they read allows, then those that are launched one by one, in
 * turn; else the order stays. */
#include "optimize/plan/plan.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* What comes before what: `waits` the host waits for the device, then `turns` between captured steps and
 * others. */
typedef struct place {
  uint32_t waits, turns, at;
} place;

static bool counts(const hn_step *s) {
  return s->kind == HN_STEP_LATE && s->node && s->node->op && s->node->op->flags & HONE_OP_DATA_DEPENDENT;
}

/* Does the host read what lies on it, which the device may have copied there? */
static bool reads_on_host(const hn_step *s) {
  return s->kind == HN_STEP_CONTROL || (s->kind == HN_STEP_REF && !s->shape_work);
}

static int by_place(const void *x, const void *y) {
  const place *a = x, *b = y;
  if (a->waits != b->waits) return a->waits < b->waits ? -1 : 1;
  if (a->turns != b->turns) return a->turns < b->turns ? -1 : 1;
  return a->at < b->at ? -1 : 1;
}

/* Moves `to` behind step j. */
static void behind(const hn_plan *p, const place *list, uint32_t j, bool apart, place *to) {
  const hn_step *s = &p->steps.ptr[j];
  const uint32_t waits = list[j].waits + counts(s);
  const uint32_t turns = list[j].turns + (hn_step_apart(p, s) != apart);
  if (waits > to->waits) to->waits = waits, to->turns = apart;
  if (list[j].waits == to->waits && turns > to->turns) to->turns = turns;
}

static void find_places(const hn_plan *p, uint32_t *maker, place *list) {
  const uint32_t none = UINT32_MAX;
  memset(maker, 0xff, (p->slots.len + 1) * sizeof *maker);
  for (uint32_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    const bool apart = hn_step_apart(p, s);
    const uint32_t n = s->desc.n_inputs + s->n_captured;
    place at = {0, apart, k};
    for (int twice = 0; twice < 2; twice++) /* turns count among those between the same waits */
      for (uint32_t i = 0; i < n; i++) {
        if (s->in[i] == HN_NO_SLOT) continue;
        const uint32_t one = maker[s->in[i]], root = maker[hn_slot_root(p, s->in[i])];
        if (one != none) behind(p, list, one, apart, &at);
        if (root != none) behind(p, list, root, apart, &at);
      }
    if (reads_on_host(s)) at.waits++, at.turns = apart;
    list[k] = at;
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
      if (s->out[i] == HN_NO_SLOT) continue;
      maker[s->out[i]] = k;
      if (maker[hn_slot_root(p, s->out[i])] == none) maker[hn_slot_root(p, s->out[i])] = k;
    }
  }
}

hone_status hn_plan_gather_waits(hn_plan *p, hone_error *error) {
  const size_t n = p->steps.len;
  uint32_t counting = 0;
  for (size_t k = 0; k < n; k++) counting += counts(&p->steps.ptr[k]);
  if (!p->backend->asynchronous || counting < 2 || HN_FAULT("counts_one_by_one")) return HONE_OK;
  place *list = hn_calloc(n, sizeof *list);
  uint32_t *maker = hn_malloc((p->slots.len + 1) * sizeof *maker);
  hn_step *step = hn_malloc(n * sizeof *step);
  const bool good = list && maker && step;
  if (good) {
    find_places(p, maker, list);
    qsort(list, n, sizeof *list, by_place);
    memcpy(step, p->steps.ptr, n * sizeof *step);
    for (size_t k = 0; k < n; k++) p->steps.ptr[k] = step[list[k].at];
  }
  hn_free(list);
  hn_free(maker);
  hn_free(step);
  return good ? HONE_OK : hn_fail_memory(error, n * sizeof *step, "the order of steps");
}
