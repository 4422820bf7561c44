#include "base/arena.h"

#include "base/asan.h"
#include "base/mem.h"
#include "base/os.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if HN_ASAN
#define SEPARATE 1 /* a block for each allocation, so that the sanitizer sees its bounds */
#else
#define SEPARATE 0
#endif

/* Blocks come from malloc, which is faster than to ask it for an alignment; the smallest are ones that it
 * keeps at hand when they are freed. */
struct hn_arena_block {
  hn_arena_block *next;
  size_t used, size;
  _Alignas(SEPARATE ? HN_MEM_ALIGN : 16) unsigned char data[];
};

enum { BLOCK = 64 << 10, SMALLEST = 1000 - sizeof(hn_arena_block) };

/* A block of several pages is as a rule written to its end, and its pages are cheaper together than by a
 * fault for each. Large ones come in huge pages, where they are touched: whoever asks for that much may yet
 * do without it. */
static void bring(hn_arena_block *b) {
  enum { FEWEST = 16 << 10, SMALL = 128 << 10, LARGE = 4 << 20, LATELY = 4 };
  static _Thread_local struct { uintptr_t from, to; } lately[LATELY];
  static _Thread_local unsigned oldest;
  if (b->size < FEWEST) return;
  const size_t bytes = b->size;
  const uintptr_t from = (uintptr_t)b->data;
  if (bytes >= LARGE) {
    hn_advise_huge(b->data, bytes);
    return;
  }
  /* A small block goes to malloc and comes back as it was. (Where its pages went meanwhile, they come alone.)
   */
  for (int i = 0; i < LATELY && bytes < SMALL; i++)
    if (lately[i].from <= from && from + bytes <= lately[i].to) return;
  hn_bring_pages(b->data, bytes);
  if (bytes >= SMALL) return;
  lately[oldest].from = from, lately[oldest].to = from + bytes;
  oldest = (oldest + 1) % LATELY;
}

/* Where in the block something of that alignment comes next. */
static size_t next_in(const hn_arena_block *b, size_t align) {
  const uintptr_t begin = (uintptr_t)b->data;
  return (size_t)(hn_round_up((size_t)(begin + b->used), align) - begin);
}

void *hn_arena_raw(hn_arena *a, size_t size, size_t align) {
  if (size > SIZE_MAX / 2) return NULL;
  if (size == 0) size = 1;
  if (a->limit && (size > a->limit || a->used > a->limit - size)) return NULL;
  hn_arena_block *b = a->head;
  size_t at = b ? next_in(b, align) : 0;
  if (!b || SEPARATE || at > b->size || size > b->size - at) {
    /* Blocks grow with the arena, so that an almost empty one stays small. */
    size_t grow = a->used < SMALLEST ? SMALLEST : a->used < BLOCK ? a->used : BLOCK;
    const size_t begins = SEPARATE ? HN_MEM_ALIGN : 16, gap = align > begins ? align - begins : 0;
    size_t want = size + gap > grow || SEPARATE ? size + gap : grow;
    hn_arena_block *fresh =
        SEPARATE ? hn_aligned(HN_MEM_ALIGN, sizeof *fresh + want) : hn_malloc(sizeof *fresh + want);
    if (!fresh) return NULL;
    fresh->used = 0;
    fresh->size = want;
    bring(fresh);
    if (b && size >= grow) { /* a block of its own: keep filling the old one */
      fresh->next = b->next;
      b->next = fresh;
    } else {
      fresh->next = b;
      a->head = fresh;
    }
    b = fresh;
    at = next_in(b, align);
  }
  b->used = at + size;
  a->used += size;
  return b->data + at;
}

void *hn_arena_aligned(hn_arena *a, size_t size, size_t align) {
  void *p = hn_arena_raw(a, size, align);
  return p ? memset(p, 0, size ? size : 1) : NULL;
}

void *hn_arena_alloc(hn_arena *a, size_t size) { return hn_arena_aligned(a, size, 16); }

void *hn_arena_array(hn_arena *a, size_t n, size_t size) {
  return size && n > SIZE_MAX / 2 / size ? NULL : hn_arena_alloc(a, n * size);
}

void *hn_arena_memdup(hn_arena *a, const void *p, size_t size) {
  void *q = hn_arena_raw(a, size, 16);
  if (q && size) memcpy(q, p, size);
  return q;
}

char *hn_arena_strndup(hn_arena *a, const char *s, size_t n) {
  char *q = n < SIZE_MAX ? hn_arena_raw(a, n + 1, 16) : NULL;
  if (!q) return NULL;
  if (n) memcpy(q, s, n);
  q[n] = 0;
  return q;
}

char *hn_arena_strdup(hn_arena *a, const char *s) { return hn_arena_strndup(a, s, strlen(s)); }

char *hn_arena_printf(hn_arena *a, const char *format, ...) {
  va_list ap, again;
  char most[200]; /* hold: names and short words, which are then written once */
  va_start(ap, format);
  va_copy(again, ap);
  int n = vsnprintf(most, sizeof most, format, ap);
  va_end(ap);
  char *s = n < 0 ? NULL : hn_arena_raw(a, (size_t)n + 1, 16);
  if (s && (size_t)n < sizeof most)
    memcpy(s, most, (size_t)n + 1);
  else if (s)
    vsnprintf(s, (size_t)n + 1, format, again);
  va_end(again);
  return s;
}

bool hn_arena_owns(const hn_arena *a, const void *p) {
  uintptr_t at = (uintptr_t)p;
  for (const hn_arena_block *b = a->head; b; b = b->next)
    if (at >= (uintptr_t)b->data && at < (uintptr_t)b->data + b->used) return true;
  return false;
}

hn_arena_mark hn_arena_here(const hn_arena *a) {
  return (hn_arena_mark){a->head, a->head ? a->head->used : 0, a->used};
}

void hn_arena_back(hn_arena *a, hn_arena_mark m) {
  if (!m.head) return;
  size_t back = 0;
  while (a->head != m.head) { /* newer ones */
    hn_arena_block *b = a->head;
    back += b->used;
    a->head = b->next;
    hn_free(b);
  }
  back += a->head->used - m.at;
  const size_t since = a->used - m.used; /* back counts gaps, since other blocks */
  a->used -= back < since ? back : since;
  a->head->used = m.at;
}

void hn_arena_free(hn_arena *a) {
  for (hn_arena_block *b = a->head, *next; b; b = next) {
    next = b->next;
    hn_free(b);
  }
  a->head = NULL;
  a->used = 0;
}
