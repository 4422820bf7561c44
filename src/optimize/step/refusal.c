#include "optimize/step/refusal.h"

void hn_refuse_add(hn_refusals *r, hone_refusal_why why, const char *by, const char *text) {
  const char *kept = r ? hn_arena_strdup(r->arena, text) : NULL;
  if (kept) hn_vec_push(&r->list, ((hone_refusal){why, by, kept}));
}

void hn_refuse_all(hn_refusals *r, const hone_refusal *more, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) hn_vec_push(&r->list, more[i]);
}

const hone_refusal *hn_refusals_take(hn_refusals *r, uint32_t *n) {
  const size_t bytes = r->list.len * sizeof *r->list.ptr;
  const hone_refusal *kept = r->list.len ? hn_arena_memdup(r->arena, r->list.ptr, bytes) : NULL;
  *n = kept ? (uint32_t)r->list.len : 0;
  hn_vec_free(&r->list);
  return kept;
}
