#include "base/mem.h"

#include "base/os.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t fail_at, count;

static _Thread_local uint64_t lost;

static void *noted(void *p) {
  lost += !p;
  return p;
}

uint64_t hn_mem_lost(void) { return lost; }
void hn_mem_forgive(uint64_t before) { lost = before; }

void hn_mem_foreign_begin(void) { errno = 0; }
void hn_mem_foreign_end(void) { lost += errno == ENOMEM; }

static int refused(void) {
  uint64_t n = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
  uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
  return at && n == at;
}

void hn_mem_fail_after(uint64_t n) { atomic_store(&fail_at, n ? atomic_load(&count) + n : 0); }
bool hn_mem_failed(void) {
  uint64_t at = atomic_load(&fail_at);
  return at && atomic_load(&count) >= at;
}
uint64_t hn_mem_count(void) { return atomic_load(&count); }

void *hn_malloc(size_t size) { return noted(refused() ? NULL : malloc(size ? size : 1)); }
void *hn_calloc(size_t n, size_t size) {
  return noted(refused() ? NULL : calloc(n ? n : 1, size ? size : 1));
}
void *hn_realloc(void *old, size_t size) { return noted(refused() ? NULL : realloc(old, size ? size : 1)); }

void *hn_aligned(size_t alignment, size_t size) {
  if (size > SIZE_MAX - alignment || refused()) return noted(NULL);
  return noted(aligned_alloc(alignment, hn_round_up(size ? size : 1, alignment)));
}

void *hn_pages(size_t alignment, size_t size) {
  return noted(refused() ? NULL : hn_map_pages(alignment, size));
}

void hn_pages_free(void *p, size_t size) {
  if (p) hn_unmap_pages(p, size);
}

char *hn_strdup(const char *s) {
  size_t n = strlen(s) + 1;
  char *p = hn_malloc(n);
  return p ? memcpy(p, s, n) : NULL;
}

void hn_free(void *p) { free(p); }
