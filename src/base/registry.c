#include "base/registry.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/quick_hash.h"

#include <string.h>

enum { LABEL = 200 };

hone_status hn_check_desc(const char *noun, const char *name, uint32_t struct_size, uint32_t abi,
                          size_t wanted, hone_error *error) {
  if (abi == HONE_PLUGIN_ABI && struct_size >= wanted) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "%s %.80s was made for another version of hone", noun, name ? name : "?");
  hn_error_expected(error, "ABI %u and %zu bytes", HONE_PLUGIN_ABI, wanted);
  hn_error_got(error, "ABI %u and %u bytes", abi, struct_size);
  hn_error_hint(error, "compile it again with the headers of this hone");
  return HONE_ERROR_USAGE;
}

/* ---- one listing */

/* The slot of a key, or the empty one where it would be. */
static uint32_t *slot_of(const hn_listing *l, const char *key) {
  const hn_kind *kind = l->of->kind;
  for (uint64_t i = hn_quick_hash(key, strlen(key), 0);; i++) {
    uint32_t *s = &l->slot[i & (l->n_slots - 1)];
    if (!*s || strcmp(kind->key(l->unit[*s - 1]), key) == 0) return s;
  }
}

/* From the last unit to the first, so that those of a key stand in order. */
static void fill_table(hn_listing *l, hn_registry *of) {
  l->of = of;
  for (uint32_t i = l->n; i-- > 0;) {
    uint32_t *s = slot_of(l, of->kind->key(l->unit[i]));
    l->next[i] = *s ? *s - 1 : HN_NO_UNIT;
    *s = i + 1;
  }
}

uint32_t hn_listing_first(const hn_listing *l, const char *key) {
  const uint32_t s = *slot_of(l, key);
  return s ? s - 1 : HN_NO_UNIT;
}

const void *hn_listing_find(const hn_listing *l, const char *key) {
  const uint32_t i = hn_listing_first(l, key);
  return i == HN_NO_UNIT ? NULL : l->unit[i];
}

/* Room for n units, in one block; the caller fills the units, then the table. */
static hn_listing *new_listing(uint32_t n, hone_error *error) {
  uint32_t n_slots = 16;
  while (n_slots / 2 <= n) n_slots *= 2;
  const size_t bytes = sizeof(hn_listing) + n * sizeof(void *) + ((size_t)n_slots + n) * sizeof(uint32_t);
  hn_listing *l = hn_calloc(1, bytes);
  if (!l) {
    hn_fail_memory(error, bytes, "a registry");
    return NULL;
  }
  const void **unit = (const void **)(l + 1);
  l->n = n;
  l->unit = unit;
  l->slot = (uint32_t *)(unit + n);
  l->next = l->slot + n_slots;
  l->n_slots = n_slots;
  return l;
}

/* ---- the registry, under its lock */

static hn_listing *now(hn_registry *r) {
  if (!r->now) {
    if (r->make) r->make();
    fill_table(&r->builtin, r);
    r->now = &r->builtin;
  }
  return r->now;
}

/* Frees a listing that nobody has. */
static void let_go(hn_registry *r, hn_listing *l) {
  if (l->held || l == r->now || l == &r->builtin) return;
  if (l->newer) l->newer->older = l->older;
  if (l->older) l->older->newer = l->newer;
  if (r->newest == l) r->newest = l->older;
  hn_free(l);
}

static pthread_mutex_t changed_lock = PTHREAD_MUTEX_INITIALIZER;
static hn_registry *changed;

static void remember(hn_registry *r) {
  if (r->changed) return;
  r->changed = true;
  pthread_mutex_lock(&changed_lock);
  r->next_changed = changed;
  changed = r;
  pthread_mutex_unlock(&changed_lock);
}

/* The listing `next`, whose units are there, instead of what is now. */
static void change(hn_registry *r, hn_listing *next) {
  hn_listing *before = now(r);
  if (next != &r->builtin) {
    remember(r);
    fill_table(next, r);
    next->older = r->newest;
    if (r->newest) r->newest->newer = next;
    r->newest = next;
  }
  r->now = next;
  let_go(r, before);
}

static uint32_t index_of(const hn_listing *l, const void *unit) {
  uint32_t i = 0;
  while (i < l->n && l->unit[i] != unit) i++;
  return i < l->n ? i : HN_NO_UNIT;
}

/* Is a unit with this label among the first n? */
static bool is_taken(const hn_kind *kind, const void *const *units, uint32_t n, const char *label) {
  char other[LABEL];
  for (uint32_t i = 0; i < n; i++) {
    kind->label(units[i], other, sizeof other);
    if (strcmp(label, other) == 0) return true;
  }
  return false;
}

static hone_status may_add(const hn_registry *r, const hn_listing *l, const void *const *units, uint32_t n,
                           hone_error *error) {
  char label[LABEL];
  for (uint32_t i = 0; i < n; i++) {
    const hone_status status = r->kind->check ? r->kind->check(units[i], error) : HONE_OK;
    if (status != HONE_OK) return status;
    r->kind->label(units[i], label, sizeof label);
    if (!is_taken(r->kind, l->unit, l->n, label) && !is_taken(r->kind, units, i, label)) continue;
    hn_fail(error, HONE_ERROR_USAGE, "there is already %s %s", r->kind->noun, label);
    hn_error_expected(error, "one that is not registered yet");
    hn_error_hint(error, "give it another name or version, or remove the other one first");
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

/* ---- from outside */

const hn_listing *hn_registry_take(hn_registry *r) {
  pthread_mutex_lock(&r->lock);
  hn_listing *l = now(r);
  l->held++;
  pthread_mutex_unlock(&r->lock);
  return l;
}

const hn_listing *hn_listing_keep(const hn_listing *listing) {
  hn_listing *l = (hn_listing *)listing;
  if (!l) return NULL;
  pthread_mutex_lock(&l->of->lock);
  l->held++;
  pthread_mutex_unlock(&l->of->lock);
  return l;
}

void hn_listing_drop(const hn_listing *listing) {
  hn_listing *l = (hn_listing *)listing;
  if (!l) return;
  hn_registry *r = l->of;
  pthread_mutex_lock(&r->lock);
  l->held--;
  let_go(r, l);
  pthread_mutex_unlock(&r->lock);
}

hone_status hn_registry_add(hn_registry *r, const void *const *units, uint32_t n, hone_error *error) {
  if (!n) return HONE_OK;
  pthread_mutex_lock(&r->lock);
  const hn_listing *l = now(r);
  hone_status status = may_add(r, l, units, n, error);
  hn_listing *next = status == HONE_OK ? new_listing(l->n + n, error) : NULL;
  if (next) {
    memcpy((void *)next->unit, l->unit, l->n * sizeof *l->unit);
    memcpy((void *)(next->unit + l->n), units, n * sizeof *units);
    change(r, next);
  } else if (status == HONE_OK)
    status = HONE_ERROR_MEMORY;
  pthread_mutex_unlock(&r->lock);
  return status;
}

hone_status hn_registry_remove(hn_registry *r, const void *const *units, uint32_t n, hone_error *error) {
  if (!n) return HONE_OK;
  pthread_mutex_lock(&r->lock);
  const hn_listing *l = now(r);
  hone_status status = HONE_OK;
  hn_listing *next = new_listing(l->n, error);
  if (!next) status = HONE_ERROR_MEMORY;
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    char label[LABEL];
    if (index_of(l, units[i]) != HN_NO_UNIT) continue;
    r->kind->label(units[i], label, sizeof label);
    status = hn_fail(error, HONE_ERROR_USAGE, "%s %s is not registered", r->kind->noun, label);
  }
  if (status == HONE_OK) {
    const void **out = (const void **)next->unit;
    next->n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
      bool stays = true;
      for (uint32_t k = 0; k < n; k++) stays &= l->unit[i] != units[k];
      if (stays) out[next->n++] = l->unit[i];
    }
    change(r, next);
  } else
    hn_free(next);
  pthread_mutex_unlock(&r->lock);
  return status;
}

bool hn_registry_holds(hn_registry *r, const void *unit) {
  pthread_mutex_lock(&r->lock);
  bool found =
      index_of(now(r), unit) != HN_NO_UNIT || (r->builtin.held && index_of(&r->builtin, unit) != HN_NO_UNIT);
  for (const hn_listing *l = r->newest; l && !found; l = l->older) found = index_of(l, unit) != HN_NO_UNIT;
  pthread_mutex_unlock(&r->lock);
  return found;
}

void hn_registry_reset(hn_registry *r) {
  pthread_mutex_lock(&r->lock);
  if (r->now && r->now != &r->builtin) change(r, &r->builtin);
  pthread_mutex_unlock(&r->lock);
}

__attribute__((destructor)) static void reset_all(void) {
  for (hn_registry *r = changed; r; r = r->next_changed) hn_registry_reset(r);
}
