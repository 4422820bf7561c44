#include "base/map.h"

#include "base/mem.h"
#include "base/quick_hash.h"

#include <string.h>

uint64_t hn_hash(const void *data, size_t size, uint64_t seed) {
  const unsigned char *p = data;
  uint64_t h = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
  for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 0x100000001b3u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

static hn_map_slot *find(const hn_map *m, const char *key, uint64_t hash) {
  for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
    hn_map_slot *s = &m->slot[i];
    if (!s->key || (s->hash == hash && strcmp(s->key, key) == 0)) return s;
  }
}

static const hn_map_slot *lookup(const hn_map *m, const char *key) {
  if (!m->cap) return NULL;
  const hn_map_slot *s = find(m, key, hn_quick_hash(key, strlen(key), 0));
  return s->key ? s : NULL;
}

void *hn_map_get(const hn_map *m, const char *key) {
  const hn_map_slot *s = lookup(m, key);
  return s ? s->value : NULL;
}

bool hn_map_has(const hn_map *m, const char *key) { return lookup(m, key) != NULL; }

bool hn_map_set(hn_map *m, const char *key, void *value) {
  if (m->len * 4 >= m->cap * 3) {
    hn_map bigger = {.cap = m->cap ? m->cap * 2 : 16, .len = m->len};
    bigger.slot = hn_calloc(bigger.cap, sizeof *bigger.slot);
    if (!bigger.slot) return false;
    for (size_t i = 0; i < m->cap; i++)
      if (m->slot[i].key) *find(&bigger, m->slot[i].key, m->slot[i].hash) = m->slot[i];
    hn_free(m->slot);
    *m = bigger;
  }
  uint64_t hash = hn_quick_hash(key, strlen(key), 0);
  hn_map_slot *s = find(m, key, hash);
  if (!s->key) {
    m->len++;
    s->key = key;
    s->hash = hash;
  }
  s->value = value;
  return true;
}

void hn_map_free(hn_map *m) {
  hn_free(m->slot);
  *m = (hn_map){0};
}
