/* A pool of memory: blocks in size classes, kept when they are freed, told apart by who holds them.
 * include/hone/memory.h says what it promises; here is where its memory comes from.
 *
 * What describes blocks lies outside of them: they may be a device's. Any thread may call. */
#ifndef HN_BASE_MEMPOOL_H
#define HN_BASE_MEMPOOL_H

#include <hone/memory.h>

typedef struct hn_mempool hn_mempool;

enum { HN_MEMPOOL_LITTLE = 16 << 20 };

typedef struct hn_mempool_source {
  void *self;
  void *(*take)(void *self, size_t bytes); /* NULL: there is no more */
  void (*give)(void *self, void *at, size_t bytes);
  /* NULL, or: a block of the segment that nobody has had yet is about to be written from end to end. */
  void (*bring)(void *self, void *segment, size_t segment_bytes, void *at, size_t bytes);
  bool (*ready)(void *self);  /* NULL, or: false when nothing is given any more (a device that is lost) */
  void (*settle)(void *self); /* NULL, or: waits until nobody uses what is about to be freed */
  /* NULL, or: bytes that may stay free, asked once, and only when more than HN_MEMPOOL_LITTLE are. */
  uint64_t (*keep)(void *self);
  size_t grain;       /* a power of 2, 4096 at least: segments are multiples of it */
  size_t large_grain; /* 0, or the same for segments of at least twice this, and where it adds half of one at
                         most */
  size_t cleared;     /* 0, or: segments of at least so many bytes come zeroed */
  bool apart;         /* each block is a segment: who watches segments' bounds sees the blocks' */
  bool host;          /* memory of this process, which a sanitizer may watch */
} hn_mempool_source;

/* NULL when out of memory. name: as in hone_memory_pool. */
hn_mempool *hn_mempool_create(const char *name, const hn_mempool_source *source);
/* Gives everything back, also what was not freed. NULL is fine. */
void hn_mempool_destroy(hn_mempool *pool);

/* Somebody new who holds memory; 0, which belongs to nobody, when out of memory. */
uint32_t hn_mempool_join(hn_mempool *pool, const char *name);
/* Its row goes when nothing is held any more. */
void hn_mempool_leave(hn_mempool *pool, uint32_t owner);

/* Not zeroed. bytes 0 gives a valid unique address. NULL: there is none, after what was free was given back.
 */
void *hn_mempool_alloc(hn_mempool *pool, uint32_t owner, hone_memory_purpose purpose, size_t bytes);
void hn_mempool_free(hn_mempool *pool, void *p); /* NULL is fine */
/* The owner will soon ask for n blocks, for weights, activations or workspace: where nothing that is free
 * holds them, one segment is taken for all, which fills its large grains better than one for each. Without
 * that they are found all the same. Little blocks of others do not hold on to the segment. */
void hn_mempool_expect(hn_mempool *pool, uint32_t owner, const uint64_t *bytes, uint32_t n);
/* Was a block of the pool zeroed when it was given? */
bool hn_mempool_cleared(hn_mempool *pool, const void *p);

/* Gives back what nobody holds; bytes. */
uint64_t hn_mempool_reclaim(hn_mempool *pool);
void hn_mempool_keep(hn_mempool *pool, uint64_t bytes);

/* Everything but the owners, which cost memory. */
void hn_mempool_totals(hn_mempool *pool, hone_memory_pool *out);
/* The same with owners: false when out of memory (out is then empty). */
bool hn_mempool_describe(hn_mempool *pool, hone_memory_pool *out);

/* HONE_POOL: "apart" or "shared"; otherwise what is usual. */
bool hn_mempool_apart(bool usual);

#endif
