/* Which steps may run beside each other on an accelerator.
 *
 * A device works on several lanes. A step goes on behind the producer of one of its inputs while that
 * producer is the last of its lane; the other branches of a fork get lanes of their own, so that kernels too
 * small to fill the device run together. What happens before what is then a partial order: the order within
 * each lane and the order of producers and readers. The memory plan asks it (hn_before), and the context
 * makes lanes wait for each other where a step needs what another lane makes.
 *
 * Steps on the host, and those whose shapes only the run knows, are points where everything meets: what comes
 * before such a step in the list happens before it, what comes after it, after. */
#include "optimize/plan/plan.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

enum { MOST_STEPS = 2048 }; /* n * n bits are kept; beyond this one lane does */

static bool of_heap(const hn_plan *p, uint32_t slot) {
  return slot != HN_NO_SLOT && p->slots.ptr[hn_slot_root(p, slot)].place == HN_PLACE_HEAP;
}

bool hn_step_apart(const hn_plan *p, const hn_step *s) {
  if (s->kind == HN_STEP_COPY) return of_heap(p, s->in[0]) || of_heap(p, s->out[0]);
  return s->kind != HN_STEP_TACTIC;
}

static uint64_t *row(const hn_plan *p, uint32_t k) { return p->before + (size_t)k * p->before_words; }

static void add_before(hn_plan *p, uint32_t earlier, uint32_t later) {
  uint64_t *to = row(p, later);
  const uint64_t *from = row(p, earlier);
  for (uint32_t w = 0; w < p->before_words; w++) to[w] |= from[w];
  to[earlier / 64] |= (uint64_t)1 << earlier % 64;
}

/* maker: by slot, the step that writes it, or UINT32_MAX; of roots the last that writes a part of it. */
static uint32_t maker_of(const hn_plan *p, const uint32_t *maker, const hn_step *s, uint32_t i) {
  return s->in[i] == HN_NO_SLOT ? UINT32_MAX : maker[hn_slot_root(p, s->in[i])];
}

/* What is read may be made in parts, by several steps. */
static void behind_makers(hn_plan *p, const uint32_t *maker, bool parts, uint32_t slot, uint32_t k) {
  if (slot == HN_NO_SLOT) return;
  const uint32_t root = hn_slot_root(p, slot);
  if (maker[root] == UINT32_MAX) return;
  add_before(p, maker[root], k);
  for (uint32_t i = 0; parts && i < p->slots.len; i++)
    if (p->slots.ptr[i].alias != HN_NO_SLOT && maker[i] != UINT32_MAX && maker[i] != maker[root] &&
        hn_slot_root(p, i) == root)
      add_before(p, maker[i], k);
}

/* What may be made over an input is made behind all that read that before. */
static void behind_readers(hn_plan *p, uint32_t k) {
  const hn_step *s = &p->steps.ptr[k];
  if (s->kind != HN_STEP_TACTIC || !s->tactic->over) return;
  for (uint32_t o = 0; o < s->desc.n_outputs; o++) {
    const int32_t in = s->out[o] == HN_NO_SLOT ? -1 : s->tactic->over(&s->desc, o);
    if (in < 0 || (uint32_t)in >= s->desc.n_inputs || s->in[in] == HN_NO_SLOT) continue;
    const uint32_t root = hn_slot_root(p, s->in[in]);
    for (uint32_t j = 0; j < k; j++) {
      const hn_step *r = &p->steps.ptr[j];
      for (uint32_t i = 0; i < r->desc.n_inputs + r->n_captured; i++)
        if (r->in[i] != HN_NO_SLOT && hn_slot_root(p, r->in[i]) == root) add_before(p, j, k);
    }
  }
}

/* The lane for step k: that of a producer that is the last of its lane, best the latest one; else one whose
 * last step happens before k anyway; else a fresh one. */
static uint32_t lane_for(const hn_plan *p, const uint32_t *maker, uint32_t k, const uint32_t *tail) {
  const hn_step *s = &p->steps.ptr[k];
  uint32_t best = UINT32_MAX, lane = 0;
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
    const uint32_t m = maker_of(p, maker, s, i);
    if (m == UINT32_MAX || hn_step_apart(p, &p->steps.ptr[m]) || tail[p->steps.ptr[m].lane] != m) continue;
    if (best == UINT32_MAX || m > best) best = m, lane = p->steps.ptr[m].lane;
  }
  if (best != UINT32_MAX) return lane;
  for (uint32_t l = 0; l < HN_LANES; l++)
    if (tail[l] != UINT32_MAX && hn_before(p, tail[l], k)) return l;
  for (uint32_t l = 0; l < HN_LANES; l++)
    if (tail[l] == UINT32_MAX) return l;
  uint32_t oldest = 0; /* all are busy: behind the one that began to wait first */
  for (uint32_t l = 1; l < HN_LANES; l++)
    if (tail[l] < tail[oldest]) oldest = l;
  return oldest;
}

hone_status hn_plan_lanes(hn_plan *p, hone_error *error) {
  const uint32_t n = (uint32_t)p->steps.len;
  if (n > MOST_STEPS || !p->backend->asynchronous) return HONE_OK;
  p->before_words = (n + 63) / 64;
  p->before = hn_arena_raw(&p->arena, (size_t)n * p->before_words * sizeof *p->before, sizeof *p->before);
  uint32_t *maker = hn_malloc((p->slots.len + 1) * sizeof *maker), tail[HN_LANES], barrier = UINT32_MAX;
  if (!p->before || !maker) {
    hn_free(maker);
    p->before = NULL;
    return hn_fail_memory(error, n * sizeof *maker, "the order of steps");
  }
  memset(p->before, 0, (size_t)n * p->before_words * sizeof *p->before);
  memset(maker, 0xff, (p->slots.len + 1) * sizeof *maker);
  memset(tail, 0xff, sizeof tail);
  bool parts = false;
  for (uint32_t k = 0; k < n; k++) {
    hn_step *s = &p->steps.ptr[k];
    if (barrier != UINT32_MAX) add_before(p, barrier, k);
    for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++)
      behind_makers(p, maker, parts, s->in[i], k);
    if (hn_step_apart(p, s)) {
      for (uint32_t j = barrier == UINT32_MAX ? 0 : barrier; j < k; j++) add_before(p, j, k);
      barrier = k;
      memset(tail, 0xff, sizeof tail);
    } else {
      behind_readers(p, k);
      s->lane = lane_for(p, maker, k, tail);
      if (tail[s->lane] != UINT32_MAX) add_before(p, tail[s->lane], k);
      tail[s->lane] = k;
      if (s->lane + 1 > p->lanes) p->lanes = s->lane + 1;
    }
    for (uint32_t i = 0; i < s->desc.n_outputs; i++)
      if (s->out[i] != HN_NO_SLOT) {
        maker[s->out[i]] = maker[hn_slot_root(p, s->out[i])] = k;
        parts |= p->slots.ptr[s->out[i]].alias != HN_NO_SLOT;
      }
  }
  hn_free(maker);
  return HONE_OK;
}
