/* Where the arena's tensors lie.
 *
 * A slot's bytes must stay from the step that makes it to the last step that reads it or one of its views.
 * Where steps run in order, their numbers are that order; on several lanes hn_before is: two slots may share
 * bytes when all that touches the one happens before the other is made. Slots are placed largest first, each
 * at the lowest offset that is free during its whole life (the usual greedy heuristic, within a few per cent
 * of the largest sum of live tensors for real networks). A pointwise step may write over an input of the same
 * size that dies there. What a Concat would gather may be written in its place at once (elide.c): such a slot
 * is made by several steps. */
#include "optimize/plan/plan.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

static void read_at(hn_plan *p, uint32_t slot, uint32_t step) {
  if (slot == HN_NO_SLOT) return;
  hn_slot *r = &p->slots.ptr[hn_slot_root(p, slot)];
  if (step > r->last) r->last = step;
}

typedef struct order_entry {
  uint64_t bytes;
  uint32_t slot;
} order_entry;

static int larger_first(const void *a, const void *b) {
  const order_entry *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

bool hn_plan_all_before(const hn_plan *p, uint32_t root, uint32_t k) {
  for (uint32_t j = 0; p->before && j < p->steps.len; j++) {
    const hn_step *s = &p->steps.ptr[j];
    if (j == k || hn_before(p, j, k)) continue;
    for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++)
      if (s->in[i] != HN_NO_SLOT && hn_slot_root(p, s->in[i]) == root) return false;
  }
  return true;
}

/* Lets a pointwise result take the place of an operand that nobody reads afterwards. Its program reads an
 * element of every operand before it writes that element of the result, and both have the same layout. An
 * operand that is another view of the same memory (a transpose by name) lies in another order: then no
 * element is safe. */
static void in_place(hn_plan *p) {
  for (uint32_t k = 0; k < p->steps.len; k++) {
    hn_step *s = &p->steps.ptr[k];
    if (s->kind != HN_STEP_TACTIC || !s->desc.program || s->desc.n_outputs != 1) continue;
    hn_slot *out = &p->slots.ptr[s->out[0]];
    if (out->place != HN_PLACE_ARENA || out->alias != HN_NO_SLOT) continue;
    for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
      if (s->in[i] == HN_NO_SLOT) continue;
      uint32_t root = hn_slot_root(p, s->in[i]);
      hn_slot *in = &p->slots.ptr[root];
      bool same = in->place == HN_PLACE_ARENA && in->last == k && in->desc.dtype == out->desc.dtype &&
                  in->bytes == out->bytes && p->slots.ptr[s->in[i]].desc.layout == out->desc.layout &&
                  p->slots.ptr[s->in[i]].desc.channel_pitch == out->desc.channel_pitch &&
                  hone_desc_same_dims(&p->slots.ptr[s->in[i]].desc, &out->desc) && root != s->out[0];
      for (uint32_t j = 0; same && j < s->desc.n_inputs; j++)
        same = s->in[j] == HN_NO_SLOT || s->in[j] == s->in[i] || hn_slot_root(p, s->in[j]) != root;
      if (!same || !hn_plan_all_before(p, root, k)) continue;
      out->alias = root;
      in->last = out->last;
      break;
    }
  }
}

/* By slot a row of bits: the steps that touch its bytes, and those that are done before any of its bytes is
 * made. NULL: steps run in order. */
typedef struct touching {
  uint64_t *bits, *before;
} touching;

static hone_status note_touching(const hn_plan *p, touching *t, hone_error *error) {
  const size_t words = p->before_words, all = p->slots.len * words;
  t->bits = t->before = NULL;
  if (!p->before) return HONE_OK;
  t->bits = hn_calloc(2 * all + 1, sizeof *t->bits);
  if (!t->bits) return hn_fail_memory(error, all * 16, "the memory plan");
  t->before = t->bits + all;
  for (uint32_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    const uint32_t n_in = s->desc.n_inputs + s->n_captured;
    for (uint32_t i = 0; i < n_in + s->desc.n_outputs; i++) {
      const uint32_t slot = i < n_in ? s->in[i] : s->out[i - n_in];
      if (slot == HN_NO_SLOT) continue;
      const size_t root = hn_slot_root(p, slot);
      t->bits[root * words + k / 64] |= (uint64_t)1 << k % 64;
      const uint64_t *row = p->before + (size_t)k * words;
      for (size_t w = 0; i >= n_in && w < words; w++)
        if (k == p->slots.ptr[root].first)
          t->before[root * words + w] = row[w];
        else
          t->before[root * words + w] &= row[w];
    }
  }
  return HONE_OK;
}

/* Is all that touches slot a done before slot b is made? */
static bool gone(const hn_plan *p, const touching *t, const hn_slot *a, const hn_slot *b) {
  if (a->last == UINT32_MAX) return false;
  if (!t->bits) return a->last < b->first;
  const uint64_t *touch = t->bits + (size_t)(a - p->slots.ptr) * p->before_words,
                 *before = t->before + (size_t)(b - p->slots.ptr) * p->before_words;
  for (uint32_t w = 0; w < p->before_words; w++)
    if (touch[w] & ~before[w]) return false;
  return true;
}

/* Gives the slots of one memory their offsets: those of the host (an accelerator's plan) or the others. */
static hone_status arrange(hn_plan *p, const touching *t, bool host, uint64_t *total, hone_error *error) {
  hone_status status = HONE_OK;
  size_t n = 0;
  order_entry *order = hn_malloc(p->slots.len * sizeof *order);
  hn_slot **placed = hn_malloc(p->slots.len * sizeof *placed);
  if (!order || !placed) {
    status = hn_fail_memory(error, p->slots.len * sizeof *order, "the memory plan");
    goto done;
  }
  for (uint32_t i = 0; i < p->slots.len; i++) {
    hn_slot *s = &p->slots.ptr[i];
    if (s->alias != HN_NO_SLOT || s->place != HN_PLACE_ARENA || s->lent) continue;
    if (host != (p->backend->asynchronous && !s->desc.device)) continue;
    order[n++] = (order_entry){s->bytes, i};
    p->naive_bytes += s->bytes;
  }
  qsort(order, n, sizeof *order, larger_first);
  for (size_t k = 0; k < n; k++) {
    hn_slot *s = &p->slots.ptr[order[k].slot];
    uint64_t size = hn_round_up(s->bytes, ALIGN), at = 0;
    /* placed[] is ordered by offset: the first gap between slots of overlapping lives. */
    for (size_t j = 0; j < k; j++) {
      if (gone(p, t, placed[j], s) || gone(p, t, s, placed[j])) continue;
      if (placed[j]->offset >= at && placed[j]->offset - at >= size) break;
      uint64_t end = placed[j]->offset + hn_round_up(placed[j]->bytes, ALIGN);
      if (end > at) at = end;
    }
    s->offset = at;
    size_t place = k;
    while (place > 0 && placed[place - 1]->offset > at) place--;
    memmove(placed + place + 1, placed + place, (k - place) * sizeof *placed);
    placed[place] = s;
    if (at + size > *total) *total = at + size;
  }
done:
  hn_free(order);
  hn_free(placed);
  return status;
}

static void find_lives(hn_plan *p) {
  for (size_t i = 0; i < p->slots.len; i++) p->slots.ptr[i].first = p->slots.ptr[i].last = 0;
  for (uint32_t k = (uint32_t)p->steps.len; k-- > 0;) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
      if (s->out[i] == HN_NO_SLOT) continue;
      p->slots.ptr[hn_slot_root(p, s->out[i])].first = k;
      read_at(p, s->out[i], k);
    }
  }
  for (uint32_t k = 0; k < p->steps.len; k++) {
    hn_step *s = &p->steps.ptr[k];
    for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) read_at(p, s->in[i], k);
    if (s->need.workspace_bytes > p->workspace_bytes) p->workspace_bytes = s->need.workspace_bytes;
  }
  for (uint32_t i = 0; i < p->n_outputs; i++) read_at(p, p->output_slot[i], UINT32_MAX);
}

static hone_status arrange_all(hn_plan *p, hone_error *error) {
  for (uint32_t i = 0; i < p->slots.len; i++) {
    hn_slot *s = &p->slots.ptr[i];
    p->has_heap |= s->place == HN_PLACE_HEAP;
    if (s->alias != HN_NO_SLOT || s->place != HN_PLACE_STAGED) continue;
    s->offset = p->staged_bytes;
    if (!s->lent) p->staged_bytes += hn_round_up(s->bytes, ALIGN);
  }
  touching t;
  hone_status status = note_touching(p, &t, error);
  if (status == HONE_OK) status = arrange(p, &t, false, &p->arena_bytes, error);
  if (status == HONE_OK) status = arrange(p, &t, true, &p->host_bytes, error);
  hn_free(t.bits);
  return status;
}

hone_status hn_plan_place(hn_plan *p, hone_error *error) {
  find_lives(p);
  in_place(p);
  const hone_status status = hn_plan_find_over(p, error);
  return status == HONE_OK ? arrange_all(p, error) : status;
}

hone_status hn_plan_place_again(hn_plan *p, hone_error *error) {
  p->arena_bytes = p->naive_bytes = p->host_bytes = p->staged_bytes = p->workspace_bytes = 0;
  find_lives(p);
  const hone_status status = hn_plan_find_over(p, error);
  return status == HONE_OK ? arrange_all(p, error) : status;
}
