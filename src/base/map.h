/* Hash map from strings to pointers. Keys are borrowed: they must outlive the map. */
#ifndef HN_BASE_MAP_H
#define HN_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_map_slot {
  const char *key;
  void *value;
  uint64_t hash;
} hn_map_slot;

typedef struct hn_map { /* zeroed: empty */
  hn_map_slot *slot;
  size_t cap, len;
} hn_map;

void *hn_map_get(const hn_map *map, const char *key); /* NULL: absent (or stored NULL) */
bool hn_map_has(const hn_map *map, const char *key);
/* Stores or replaces; false when out of memory. */
bool hn_map_set(hn_map *map, const char *key, void *value);
void hn_map_free(hn_map *map);

/* 64-bit FNV-1a with a final mix; also used for content hashes of small keys. */
uint64_t hn_hash(const void *data, size_t size, uint64_t seed);

#endif
