/* Every small group of steps that one kernel could do: connected by values that nobody else reads, with one
 * result. */
#include "api/candidates/candidates.h"

#include "base/map.h"

#include <string.h>

enum {
  MOST_OF_ROOT = 48,    /* groups that end with the same step */
  MOST_PLACES = 200000, /* of the whole model */
  FRONTIER = 4 * HN_COMPOUND_NODES
};

typedef struct lister {
  hn_candidate_search *search;
  hn_compounds *out;
  hn_map by_key; /* number of a form + 1 */
  uint32_t of_root;
} lister;

typedef struct frontier {
  uint32_t n, block[FRONTIER];
} frontier;

/* A view with nothing of the place before it only renames an input. */
static bool begins_with_view(const hn_candidate_search *s, const hn_group *p) {
  for (uint32_t i = 0; i < p->n; i++) {
    const hn_block *b = &s->block[p->block[i]];
    if (b->step >= 0) continue;
    const hn_block *before = b->node[0]->n_in ? hn_candidate_maker(s, b->node[0]->in[0]) : NULL;
    if (!before || !hn_group_has(p, (int32_t)(before - s->block))) return true;
  }
  return false;
}

static int32_t form_of(lister *e, const hn_group *p) {
  hn_spelling spelling;
  hn_arena temp = {0};
  int32_t form = -1;
  if (hn_group_spell(e->search, p, &temp, &spelling)) {
    const uintptr_t known = (uintptr_t)hn_map_get(&e->by_key, spelling.form.key);
    if (known) {
      form = (int32_t)known - 1;
    } else if (hn_group_spell(e->search, p, e->search->arena, &spelling) &&
               hn_map_set(&e->by_key, spelling.form.key, (void *)(uintptr_t)(e->out->forms.len + 1)) &&
               hn_vec_push(&e->out->forms, spelling.form)) {
      form = (int32_t)e->out->forms.len - 1;
    } else {
      e->search->failed = true;
    }
  }
  hn_arena_free(&temp);
  return form;
}

static void keep(lister *e, const hn_group *p) {
  uint32_t steps = 0;
  for (uint32_t i = 0; i < p->n; i++) steps += e->search->block[p->block[i]].step >= 0;
  if (steps < 2 || hn_group_nodes(e->search, p) < 2 || begins_with_view(e->search, p)) return;
  const int32_t form = form_of(e, p);
  if (form < 0) return;
  hn_group found = *p;
  found.form = (uint32_t)form;
  found.saving = hn_group_saving(e->search, p);
  if (hn_vec_push(&e->out->places, found))
    e->of_root++;
  else
    e->search->failed = true;
}

/* All that read what the block makes are in the place. */
static bool feeds_only(const hn_candidate_search *s, const hn_block *b, const hn_group *p) {
  if (!b->member || !b->exit || b->exit->is_output || !b->exit->users.len) return false;
  for (size_t u = 0; u < b->exit->users.len; u++) {
    const hone_node *reader = b->exit->users.ptr[u].node;
    if (reader->graph != s->plan->model->graph) return false;
    const int32_t in = hn_candidate_block_of(s, reader);
    if (in != (int32_t)(b - s->block) && !hn_group_has(p, in)) return false;
  }
  return true;
}

static bool waits(const frontier *f, uint32_t block) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->block[i] == block) return true;
  return false;
}

/* What may come before the block that was just added. Nothing comes before a product: it reads its operands
 * again and again. */
static void widen(const hn_candidate_search *s, const hn_group *p, frontier *f) {
  const hn_block *added = &s->block[p->block[p->n - 1]];
  for (uint32_t i = 0; i < (added->product ? 0 : added->n_nodes); i++)
    for (uint32_t k = 0; k < added->node[i]->n_in; k++) {
      const hn_block *b = hn_candidate_maker(s, added->node[i]->in[k]);
      const uint32_t at = b ? (uint32_t)(b - s->block) : 0;
      if (b && f->n < FRONTIER && !hn_group_has(p, (int32_t)at) && !waits(f, at) && feeds_only(s, b, p))
        f->block[f->n++] = at;
    }
}

static bool has_product(const hn_candidate_search *s, const hn_group *p) {
  for (uint32_t i = 0; i < p->n; i++)
    if (s->block[p->block[i]].product) return true;
  return false;
}

/* Every group that holds p, and of the frontier only what stands from `from` on: each group once. */
static void grow(lister *e, const hn_group *p, const frontier *f, uint32_t from) {
  const hn_candidate_search *s = e->search;
  if (p->n > 1) keep(e, p);
  for (uint32_t i = from; i < f->n && e->of_root < MOST_OF_ROOT && !s->failed; i++) {
    const hn_block *b = &s->block[f->block[i]];
    if (hn_group_nodes(s, p) + b->n_nodes > HN_COMPOUND_NODES || (b->product && has_product(s, p))) continue;
    hn_group wider = *p;
    frontier next = *f;
    wider.block[wider.n++] = f->block[i];
    widen(s, &wider, &next);
    grow(e, &wider, &next, i + 1);
  }
}

bool hn_compounds_list(hn_candidate_search *s, hn_compounds *out) {
  lister e = {.search = s, .out = out};
  for (uint32_t i = 0; i < s->n_blocks && !s->failed && out->places.len < MOST_PLACES; i++) {
    const hn_block *b = &s->block[i];
    if (!b->member || b->step < 0 || b->product || !b->exit) continue;
    hn_group p = {.n = 1, .block = {i}};
    frontier f = {0};
    e.of_root = 0;
    widen(s, &p, &f);
    grow(&e, &p, &f, 0);
  }
  hn_map_free(&e.by_key);
  return !s->failed;
}
