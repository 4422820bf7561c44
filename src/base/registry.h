/* Registries: the units that the library knows (operators, tactics, passes...), each kind in an object of its
 * own.
 *
 * A registry begins with the units that a .def list names. Others are added and removed while it is in use.
 * Nothing is ever replaced: a unit that cannot be told from one that is there (by its label) is refused.
 *
 * Who reads takes a listing: the units as they are now, in order, with a hash table over their keys. A
 * listing never changes, whatever is added or removed meanwhile, so looking things up in it takes no lock and
 * may be done from any thread; taking, keeping and dropping one take the registry's lock for a few
 * instructions. A unit that was removed lives on in the listings that were taken before: hn_registry_holds
 * says when the last of them is gone. The units of the .def lists need no memory beside their registry's own,
 * which is static. */
#ifndef HN_BASE_REGISTRY_H
#define HN_BASE_REGISTRY_H

#include <hone/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a registry must know of its units. */
typedef struct hn_kind {
  const char *noun; /* "operator": for messages */
  /* What it is looked up by, with as many others as have the same key. Lives as long as the unit. */
  const char *(*key)(const void *unit);
  /* Words that tell it from all others. */
  void (*label)(const void *unit, char *buf, size_t size);
  /* Is it whole, and made for this library? The error says what is wrong. Asked of units that are added;
   * NULL: always. */
  hone_status (*check)(const void *unit, hone_error *error);
} hn_kind;

/* For check: does a descriptor of include/hone/plugin.h begin as this library wants it? */
hone_status hn_check_desc(const char *noun, const char *name, uint32_t struct_size, uint32_t abi,
                          size_t wanted, hone_error *error);

typedef struct hn_registry hn_registry;

typedef struct hn_listing {
  uint32_t n;
  const void *const *unit; /* [n] in the order in which they came */
  /* registry.c's own */
  uint32_t *slot, *next; /* hash table of 1 + index; index of the next unit of the same key */
  uint32_t n_slots;      /* a power of 2 */
  uint32_t held;
  hn_registry *of;
  struct hn_listing *older, *newer;
} hn_listing;

struct hn_registry { /* static, made by HN_REGISTRY */
  const hn_kind *kind;
  void (*make)(void); /* fills in the units of the .def list when they are first asked for, or NULL */
  pthread_mutex_t lock;
  hn_listing builtin;
  hn_listing *now;    /* NULL: nobody has asked yet */
  hn_listing *newest; /* of those with memory of their own */
  bool changed;       /* it was, at some time: the end of the library resets it */
  hn_registry *next_changed;
};

#define HN_REGISTRY_SLOTS(n) ((n) < 8 ? 16 : (n) < 64 ? 128 : (n) < 512 ? 1024 : (n) < 4096 ? 8192 : 1 << 20)
/* Initialises a static registry. UNITS is a static array of const void *, with at least one. */
#define HN_REGISTRY(KIND, UNITS) HN_REGISTRY_MADE(KIND, UNITS, NULL)
/* One whose units few programs ask for: MAKE fills in UNITS. Every pointer that the compiler writes into a
 * table is moved by the loader at every start, 2 us a page. */
#define HN_REGISTRY_MADE(KIND, UNITS, MAKE)                                                                  \
  {                                                                                                          \
    .kind = (KIND), .make = (MAKE), .lock = PTHREAD_MUTEX_INITIALIZER, .builtin = {                          \
      .n = sizeof(UNITS) / sizeof *(UNITS),                                                                  \
      .unit = (UNITS),                                                                                       \
      .slot = (uint32_t[HN_REGISTRY_SLOTS(sizeof(UNITS) / sizeof *(UNITS))]){0},                             \
      .next = (uint32_t[sizeof(UNITS) / sizeof *(UNITS)]){0},                                                \
      .n_slots = HN_REGISTRY_SLOTS(sizeof(UNITS) / sizeof *(UNITS))                                          \
    }                                                                                                        \
  }

/* The units of now. Never NULL; drop it. */
const hn_listing *hn_registry_take(hn_registry *registry);
/* The same listing once more; NULL of NULL. */
const hn_listing *hn_listing_keep(const hn_listing *listing);
void hn_listing_drop(const hn_listing *listing); /* NULL: nothing */

#define HN_NO_UNIT UINT32_MAX
/* The units of a key, in order: for (i = hn_listing_first(l, key); i != HN_NO_UNIT; i = l->next[i])
 * l->unit[i].
 */
uint32_t hn_listing_first(const hn_listing *listing, const char *key);
/* The first unit of a key, or NULL. */
const void *hn_listing_find(const hn_listing *listing, const char *key);

/* Adds n units behind the others: all or, with an error, none. They must live until they are removed and
 * hn_registry_holds is false. HONE_ERROR_USAGE: one is there already, or what the kind's check says. */
hone_status hn_registry_add(hn_registry *registry, const void *const *units, uint32_t n, hone_error *error);
/* HONE_ERROR_USAGE: one is not there, and nothing was removed. */
hone_status hn_registry_remove(hn_registry *registry, const void *const *units, uint32_t n,
                               hone_error *error);
/* Is the unit registered, or in a listing that somebody still has? */
bool hn_registry_holds(hn_registry *registry, const void *unit);
/* Back to the units of the .def list; what was added is removed and its memory freed. Happens to all of them
 * when the library is unloaded or the process ends. */
void hn_registry_reset(hn_registry *registry);

#endif
