/* Which values of a processor's plan lie in 16 bits between steps (fp16, bf16). Kernels there read and write
 * either type, as far as their tactics say so; what one of the steps around a value does not take narrow, or
 * does faster with f32, stays f32, and so does what callers give and get: a step that mixes both types is
 * better than a pass over memory between two steps. Whatever this leaves mixed beyond what tactics take is
 * rewritten on the way (commit.c), so that nothing here decides whether a plan is right. */
#include "optimize/lower/lowering.h"

#include <string.h>

#include "base/error.h"
#include "optimize/match/attention.h"

/* A unit is looked at again when more of what it touches stays f32 than before: in so many rounds at most. */
enum { ROUNDS = 8 };

typedef struct touched {
  uint32_t exact, narrow;
} touched;

typedef void (*on_value)(hn_lowering *l, const hn_value *v, touched *t);

static void count(hn_lowering *l, const hn_value *v, touched *t) {
  if (!v || v->desc.dtype != HONE_DTYPE_F32 || (v->constant && !v->producer)) return;
  *(hn_is_exact(l, v) ? &t->exact : &t->narrow) += 1;
}

static void keep(hn_lowering *l, const hn_value *v, touched *t) {
  (void)t;
  hn_keep_exact(l, v);
}

/* What the unit reads and makes, with what stays inside of it. */
static void each_value(hn_lowering *l, const hn_unit *u, on_value fn, touched *t) {
  for (uint32_t k = 0; k < u->n_parts; k++) each_value(l, u->parts[k], fn, t);
  for (uint32_t k = 0; k < u->n_absorbed; k++) each_value(l, u->absorbed[k], fn, t);
  for (uint32_t i = 0; i < u->n_in; i++) fn(l, u->in[i], t);
  fn(l, u->out, t);
  for (uint32_t i = 1; u->kind == HN_UNIT_NODE && i < u->node->n_out; i++) fn(l, u->node->out[i], t);
}

/* A view has one type on both sides. */
static bool even_out(hn_lowering *l, const hn_unit *u) {
  const bool in = hn_is_exact(l, u->in[0]), out = hn_is_exact(l, u->out);
  if (in == out || (!in && u->in[0]->constant)) return false;
  hn_keep_exact(l, in ? u->out : u->in[0]);
  return true;
}

static bool stays_narrow(hn_lowering *l, const hn_unit *u) {
  hn_estimate narrow, wide;
  if (hn_stays_f32(l->plan, u->node)) return false;
  for (uint32_t k = 0; k < u->n_parts; k++)
    if (hn_stays_f32(l->plan, u->parts[k]->node)) return false;
  if (!hn_lower_try(l, u, false, &narrow)) return false;
  return !hn_lower_try(l, u, true, &wide) || narrow.seconds <= wide.seconds;
}

/* What is added to the scores of attention may be large beside them, or say little differences of places. */
static void keep_masks(hn_lowering *l, const hn_unit *u) {
  if (u->kind != HN_UNIT_PATTERN || strcmp(u->anchor, "FusedAttention") != 0) return;
  for (uint32_t i = HN_ATTENTION_MASK; i < u->n_in; i++) hn_keep_exact(l, u->in[i]);
}

hone_status hn_lower_stored(hn_lowering *l, hone_error *error) {
  const hn_plan *p = l->plan;
  if (p->storage == HONE_DTYPE_F32 || p->backend->asynchronous) return HONE_OK;
  uint32_t *tried = HN_NEW_ARRAY(l->temp, uint32_t, l->units.len); /* with so many exact values, and one */
  if (!tried) return hn_fail_memory(error, l->units.len, "lowering");
  bool changed = true;
  l->stored = true;
  for (size_t i = 0; i < l->units.len; i++) keep_masks(l, l->units.ptr[i]);
  for (int round = 0; changed && round < ROUNDS; round++) {
    changed = false;
    for (size_t i = 0; i < l->units.len; i++) {
      const hn_unit *u = l->units.ptr[i];
      touched t = {0, 0};
      if (u->into) continue;
      if (u->kind == HN_UNIT_VIEW) {
        changed |= even_out(l, u);
        continue;
      }
      each_value(l, u, count, &t);
      if (!t.narrow || tried[i] == t.exact + 1) continue;
      tried[i] = t.exact + 1;
      if (stays_narrow(l, u)) continue;
      each_value(l, u, keep, &t);
      changed = true;
    }
  }
  return HONE_OK;
}
