/* Bump allocator: many small objects that die together. Not thread-safe. */
#ifndef HN_BASE_ARENA_H
#define HN_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hn_arena_block hn_arena_block;

typedef struct hn_arena {
  hn_arena_block *head; /* newest block first */
  size_t used;          /* bytes handed out */
  size_t limit;         /* 0: none; else allocations fail beyond it */
} hn_arena;

/* A zeroed hn_arena is ready to use. */
void *hn_arena_alloc(hn_arena *arena, size_t size); /* zeroed, 16-byte aligned; NULL when out of memory */
void *hn_arena_aligned(hn_arena *arena, size_t size, size_t align); /* zeroed */
/* Not zeroed: for large data that is written at once. */
void *hn_arena_raw(hn_arena *arena, size_t size, size_t align);
char *hn_arena_strdup(hn_arena *arena, const char *s);
char *hn_arena_strndup(hn_arena *arena, const char *s, size_t n);
void *hn_arena_memdup(hn_arena *arena, const void *p, size_t size);
char *hn_arena_printf(hn_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool hn_arena_owns(const hn_arena *arena, const void *p);
/* What was taken since the mark is free again, but for what was so large that it has a block of its own. Of
 * an arena that was empty then nothing is. */
typedef struct hn_arena_mark {
  hn_arena_block *head;
  size_t at, used;
} hn_arena_mark;
hn_arena_mark hn_arena_here(const hn_arena *arena);
void hn_arena_back(hn_arena *arena, hn_arena_mark mark);
void hn_arena_free(hn_arena *arena); /* frees everything; the arena is empty and usable again */

#define HN_NEW(arena, type) ((type *)hn_arena_alloc((arena), sizeof(type)))
#define HN_NEW_ARRAY(arena, type, n) ((type *)hn_arena_array((arena), (n), sizeof(type)))
/* n * size zeroed bytes; NULL also when the product overflows. */
void *hn_arena_array(hn_arena *arena, size_t n, size_t size);

#endif
