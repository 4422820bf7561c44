#include "base/mempool.h"

#include "base/asan.h"
#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HN_ASAN
#include <sanitizer/asan_interface.h>
enum { GUARD = 64 }; /* bytes behind every block that nobody may touch */
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
enum { GUARD = 0 };
#endif

enum { PAGE = 4096, SMALL = 4, LARGE = SMALL, SLAB_MOST = 64, BOUND = 512 };
/* A block up to this is cut for anything that fits; larger ones only for what takes a good part of them, so
 * that the place of a large tensor is not lost to a small one. */
#define CUT_FREELY ((size_t)1 << 20)

/* The small classes, and how many blocks are taken at a time. */
static const struct {
  size_t bytes;
  uint32_t count;
} classes[SMALL] = {{1 << 10, 64}, {4 << 10, 16}, {16 << 10, 16}, {64 << 10, 8}};

/* What somebody has. */
typedef struct holding {
  size_t wanted;
  uint32_t owner;
  uint32_t purpose;
} holding;

/* Blocks of one class in a large block. */
typedef struct slab {
  char *at;
  uint32_t class;
  uint64_t free; /* a bit each */
  holding holding[SLAB_MOST];
} slab;

typedef struct block {
  size_t at, size; /* in the segment */
  bool used;
  bool cleared;      /* nobody has had it yet, and it came zeroed */
  bool expected;     /* of a segment that was taken for several blocks: it is cut for any of them, */
  uint32_t expecter; /* which are this owner's */
  slab *slab;        /* used by this, or by: */
  holding holding;
} block;

typedef struct segment {
  void *taken; /* as it came from the source */
  size_t taken_bytes;
  char *at; /* aligned */
  size_t size, free_bytes;
  HN_VEC(block) blocks; /* in order, without gaps; no two free ones side by side */
} segment;

typedef struct owner {
  char name[sizeof((hone_memory_owner *)0)->name];
  bool present; /* false: the row is free for another */
  uint64_t blocks, used, reserved, high;
  uint64_t used_for[HONE_MEMORY_PURPOSES];
} owner;

struct hn_mempool {
  char name[32];
  hn_mempool_source source;
  pthread_mutex_t lock;
  HN_VEC(segment *) segments; /* by address */
  HN_VEC(slab *) open[SMALL]; /* slabs with free blocks */
  HN_VEC(owner) owners;       /* [0]: nobody */
  size_t n_slabs[SMALL];
  bool shifted; /* the source's memory is not aligned to pages: a page more is taken */
  uint64_t keep;
  uint64_t used, reserved, free_bytes; /* free_bytes: of segments, without those of slabs */
  uint64_t idle;                       /* bytes of slabs that nobody holds anything of */
  uint64_t high, reserved_high, taken, given, reclaims;
};

/* ------------------------------------------------------------------ life */

bool hn_mempool_apart(bool usual) {
  const char *said = getenv("HONE_POOL");
  if (said && strcmp(said, "apart") == 0) return true;
  if (said && strcmp(said, "shared") == 0) return false;
  return usual;
}

hn_mempool *hn_mempool_create(const char *name, const hn_mempool_source *source) {
  hn_mempool *m = hn_calloc(1, sizeof *m);
  if (!m) return NULL;
  snprintf(m->name, sizeof m->name, "%s", name);
  m->source = *source;
  m->keep = m->source.keep ? HN_MEMPOOL_LITTLE : UINT64_MAX;
  if (!hn_vec_push(&m->owners, (owner){.present = true})) {
    hn_free(m);
    return NULL;
  }
  pthread_mutex_init(&m->lock, NULL);
  return m;
}

static void give(hn_mempool *m, segment *s) {
  if (m->source.host) ASAN_UNPOISON_MEMORY_REGION(s->taken, s->taken_bytes);
  m->given++;
  m->reserved -= s->taken_bytes;
  m->free_bytes -= s->free_bytes;
  m->source.give(m->source.self, s->taken, s->taken_bytes);
  hn_vec_free(&s->blocks);
  hn_free(s);
}

void hn_mempool_destroy(hn_mempool *m) {
  if (!m) return;
  for (size_t i = 0; i < m->segments.len; i++) {
    segment *s = m->segments.ptr[i];
    for (size_t k = 0; k < s->blocks.len; k++) hn_free(s->blocks.ptr[k].slab);
    give(m, s);
  }
  hn_vec_free(&m->segments);
  for (int i = 0; i < SMALL; i++) hn_vec_free(&m->open[i]);
  hn_vec_free(&m->owners);
  pthread_mutex_destroy(&m->lock);
  hn_free(m);
}

/* ------------------------------------------------------------------ owners */

uint32_t hn_mempool_join(hn_mempool *m, const char *name) {
  size_t at = 0;
  pthread_mutex_lock(&m->lock);
  for (size_t i = 1; !at && i < m->owners.len; i++)
    if (!m->owners.ptr[i].present && !m->owners.ptr[i].blocks) at = i;
  if (!at && hn_vec_push(&m->owners, (owner){0})) at = m->owners.len - 1;
  if (at) {
    owner *o = &m->owners.ptr[at];
    *o = (owner){.present = true};
    snprintf(o->name, sizeof o->name, "%s", name);
  }
  pthread_mutex_unlock(&m->lock);
  return (uint32_t)at;
}

void hn_mempool_leave(hn_mempool *m, uint32_t who) {
  if (!who) return;
  pthread_mutex_lock(&m->lock);
  if (who < m->owners.len) m->owners.ptr[who].present = false;
  pthread_mutex_unlock(&m->lock);
}

static void hold(hn_mempool *m, holding *h, uint32_t who, uint32_t purpose, size_t bytes, size_t size) {
  if (who >= m->owners.len) who = 0;
  owner *o = &m->owners.ptr[who];
  *h = (holding){bytes, who, purpose < HONE_MEMORY_PURPOSES ? purpose : HONE_MEMORY_FOR_OTHER};
  o->blocks++;
  o->used += bytes;
  o->reserved += size;
  o->used_for[h->purpose] += bytes;
  if (o->used > o->high) o->high = o->used;
  m->used += bytes;
  if (m->used > m->high) m->high = m->used;
}

static void let_go(hn_mempool *m, holding *h, size_t size) {
  owner *o = &m->owners.ptr[h->owner];
  o->blocks--;
  o->used -= h->wanted;
  o->reserved -= size;
  o->used_for[h->purpose] -= h->wanted;
  m->used -= h->wanted;
  *h = (holding){0};
}

/* ------------------------------------------------------------------ segments */

/* The place of the first segment that begins behind p. */
static size_t behind(const hn_mempool *m, const void *p) {
  size_t low = 0, high = m->segments.len;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if ((uintptr_t)m->segments.ptr[mid]->at <= (uintptr_t)p)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static segment *segment_of(const hn_mempool *m, const void *p) {
  const size_t i = behind(m, p);
  segment *s = i ? m->segments.ptr[i - 1] : NULL;
  return s && (uintptr_t)p < (uintptr_t)s->at + s->size ? s : NULL;
}

/* The block of the segment that holds the byte at `offset`. */
static size_t block_at(const segment *s, size_t offset) {
  size_t low = 0, high = s->blocks.len - 1;
  while (low < high) {
    const size_t mid = low + (high - low + 1) / 2;
    if (s->blocks.ptr[mid].at <= offset)
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/* The block is free: one with those beside it. */
static void join_free(hn_mempool *m, segment *s, size_t i) {
  block *b = s->blocks.ptr;
  b[i].used = b[i].cleared = false;
  b[i].slab = NULL;
  s->free_bytes += b[i].size;
  m->free_bytes += b[i].size;
  size_t from = i, until = i + 1;
  if (i && !b[i - 1].used) from--;
  if (until < s->blocks.len && !b[until].used) until++;
  b[from].cleared = false;
  for (size_t k = from + 1; k < until; k++) {
    b[from].size += b[k].size;
    if (b[k].expected) b[from].expected = true, b[from].expecter = b[k].expecter;
  }
  memmove(b + from + 1, b + until, (s->blocks.len - until) * sizeof *b);
  s->blocks.len -= until - from - 1;
}

static void close_slab(hn_mempool *m, segment *s, size_t i) {
  slab *x = s->blocks.ptr[i].slab;
  const uint32_t c = x->class;
  for (size_t k = 0; k < m->open[c].len; k++)
    if (m->open[c].ptr[k] == x) {
      m->open[c].ptr[k] = m->open[c].ptr[--m->open[c].len];
      break;
    }
  m->n_slabs[c]--;
  m->idle -= classes[c].bytes * classes[c].count;
  hn_free(x);
  join_free(m, s, i);
}

static uint64_t all_free(uint32_t class) {
  return classes[class].count == 64 ? UINT64_MAX : ((uint64_t)1 << classes[class].count) - 1;
}

/* Gives back segments that nobody holds anything of, until no more than `keep` bytes are free. */
static uint64_t reclaim(hn_mempool *m, uint64_t keep) {
  const uint64_t before = m->reserved;
  size_t left = 0;
  for (size_t i = 0; i < m->segments.len; i++) {
    segment *s = m->segments.ptr[i];
    for (size_t k = 0; k < s->blocks.len; k++) {
      const slab *x = s->blocks.ptr[k].slab;
      if (!x || x->free != all_free(x->class)) continue;
      close_slab(m, s, k);
      k = k ? k - 1 : 0; /* what was behind it may have moved here */
    }
  }
  for (size_t i = 0; i < m->segments.len; i++) {
    segment *s = m->segments.ptr[i];
    if (s->free_bytes == s->size && m->free_bytes > keep)
      give(m, s);
    else
      m->segments.ptr[left++] = s;
  }
  m->segments.len = left;
  m->reclaims += m->reserved < before;
  return before - m->reserved;
}

static void *take(hn_mempool *m, size_t bytes) {
  void *p = m->source.take(m->source.self, bytes);
  m->taken++;
  if (p) m->reserved += bytes;
  return p;
}

static void untake(hn_mempool *m, void *p, size_t bytes) {
  m->given++;
  m->reserved -= bytes;
  m->source.give(m->source.self, p, bytes);
}

/* Pages of the source, at the beginning of a page. */
static bool take_pages(hn_mempool *m, segment *s, size_t size) {
  const bool aligns = !m->source.apart; /* blocks apart lie as the source lays them */
  s->taken_bytes = size + (m->shifted ? PAGE : 0);
  s->taken = take(m, s->taken_bytes);
  if (s->taken && aligns && !m->shifted && (uintptr_t)s->taken % PAGE) {
    untake(m, s->taken, s->taken_bytes);
    m->shifted = true;
    s->taken_bytes = size + PAGE;
    s->taken = take(m, s->taken_bytes);
  }
  if (!s->taken) return false;
  const uintptr_t at = (uintptr_t)s->taken;
  s->at = (char *)s->taken + (aligns ? hn_round_up(at, PAGE) - at : 0);
  s->size = size;
  if (m->source.host) ASAN_POISON_MEMORY_REGION(s->taken, s->taken_bytes);
  return true;
}

/* A new segment, all free. */
static segment *grow(hn_mempool *m, size_t size) {
  segment *s = hn_calloc(1, sizeof *s);
  if (!s || !hn_vec_reserve(&s->blocks, 4) || !hn_vec_reserve(&m->segments, m->segments.len + 1)) {
    if (s) hn_vec_free(&s->blocks);
    hn_free(s);
    return NULL;
  }
  if (!take_pages(m, s, size) && (!reclaim(m, 0) || !take_pages(m, s, size))) {
    hn_vec_free(&s->blocks);
    hn_free(s);
    return NULL;
  }
  const bool cleared = m->source.cleared && size >= m->source.cleared;
  s->blocks.ptr[s->blocks.len++] = (block){.size = size, .cleared = cleared};
  s->free_bytes = size;
  m->free_bytes += size;
  if (m->reserved > m->reserved_high) m->reserved_high = m->reserved;
  const size_t i = behind(m, s->at);
  memmove(m->segments.ptr + i + 1, m->segments.ptr + i, (m->segments.len - i) * sizeof *m->segments.ptr);
  m->segments.ptr[i] = s;
  m->segments.len++;
  return s;
}

/* ------------------------------------------------------------------ large blocks */

/* Eight sizes for each power of two, so that an eighth is lost at most: a block apart is used again whole. */
static size_t size_apart(const hn_mempool *m, size_t bytes) {
  if (bytes <= BOUND) return BOUND;
  if (bytes > m->source.grain) return hn_round_up(bytes, m->source.grain);
  size_t step = BOUND / 8;
  while (step * 16 < bytes) step *= 2;
  return hn_round_up(bytes, step > BOUND / 2 ? step : BOUND / 2);
}

/* What a block is wanted for: something among others, or what a plan or a run of this owner has as a whole.
 */
typedef struct wanted {
  bool whole;
  uint32_t owner;
} wanted;

/* May the free block serve `size` bytes? */
static bool suits(const hn_mempool *m, const block *b, size_t size, wanted what) {
  if (b->used || b->size < size) return false;
  if (m->source.apart) return b->size <= size + size / 8;
  if (b->expected && what.whole && b->expecter == what.owner) return true;
  return b->size <= CUT_FREELY || b->size <= m->source.grain || b->size / 4 <= size;
}

typedef struct found {
  segment *s;
  size_t i;
} found;

/* The smallest that suits; any: the smallest that is large enough. */
static found best_fit(const hn_mempool *m, size_t size, wanted what, bool any) {
  found f = {0};
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < m->segments.len && best > size; i++) {
    segment *s = m->segments.ptr[i];
    if (s->free_bytes < size) continue;
    for (size_t k = 0; k < s->blocks.len; k++) {
      const block *b = &s->blocks.ptr[k];
      if (b->size >= best || !(any ? !b->used && b->size >= size : suits(m, b, size, what))) continue;
      best = b->size;
      f = (found){s, k};
    }
  }
  return f;
}

static size_t largest_free(const hn_mempool *m) {
  size_t most = 0;
  for (size_t i = 0; i < m->segments.len; i++)
    for (size_t k = 0; k < m->segments.ptr[i]->blocks.len; k++) {
      const block *b = &m->segments.ptr[i]->blocks.ptr[k];
      if (!b->used && b->size > most) most = b->size;
    }
  return most;
}

static size_t segment_size(const hn_mempool *m, size_t size) {
  if (m->source.apart) return size;
  const size_t large = m->source.large_grain;
  const size_t whole = large ? hn_round_up(size, large) : 0;
  const bool fits = whole && whole - size <= large / 2; /* as many small ones take longer to come */
  return fits || (large && size >= 2 * large) ? whole : hn_round_up(size, m->source.grain);
}

/* Takes `size` bytes of a free block; the rest stays free. */
static bool cut(hn_mempool *m, found f, size_t size) {
  segment *s = f.s;
  const size_t rest = s->blocks.ptr[f.i].size - size;
  if (rest && !m->source.apart) {
    if (!hn_vec_reserve(&s->blocks, s->blocks.len + 1)) return false;
    block *b = &s->blocks.ptr[f.i];
    memmove(b + 2, b + 1, (s->blocks.len - f.i - 1) * sizeof *b);
    b[1] = (block){.at = b->at + size,
                   .size = rest,
                   .cleared = b->cleared,
                   .expected = b->expected,
                   .expecter = b->expecter};
    b->size = size;
    s->blocks.len++;
  }
  block *b = &s->blocks.ptr[f.i];
  b->used = true;
  s->free_bytes -= b->size;
  m->free_bytes -= b->size;
  return true;
}

/* A block of pages; f.s NULL: there is none. */
static found take_large(hn_mempool *m, size_t size, wanted what) {
  found f = best_fit(m, size, what, false);
  if (!f.s) {
    const size_t want = segment_size(m, size);
    /* Free memory that is too small for this one makes room, rather than that the pool holds ever more. */
    if (m->free_bytes + m->idle && m->reserved + want > m->reserved_high && largest_free(m) < size)
      reclaim(m, 0);
    f = (found){grow(m, want), 0};
    if (!f.s) f = best_fit(m, size, what, true);
  }
  if (f.s && !cut(m, f, size)) f.s = NULL;
  return f;
}

/* ------------------------------------------------------------------ small blocks */

static slab *open_slab(hn_mempool *m, uint32_t c) {
  if (m->open[c].len) return m->open[c].ptr[m->open[c].len - 1];
  slab *x = hn_calloc(1, sizeof *x);
  found f = {0};
  /* Room for all of them: then a free cannot fail. */
  if (x && hn_vec_reserve(&m->open[c], m->n_slabs[c] + 1))
    f = take_large(m, classes[c].bytes * classes[c].count, (wanted){0});
  if (!f.s) {
    hn_free(x);
    return NULL;
  }
  block *b = &f.s->blocks.ptr[f.i];
  *x = (slab){.at = f.s->at + b->at, .class = c, .free = all_free(c)};
  b->slab = x;
  m->n_slabs[c]++;
  m->idle += classes[c].bytes * classes[c].count;
  m->open[c].ptr[m->open[c].len++] = x;
  return x;
}

static void *take_small(hn_mempool *m, uint32_t c, uint32_t who, uint32_t purpose, size_t bytes) {
  slab *x = open_slab(m, c);
  if (!x) return NULL;
  const uint32_t i = (uint32_t)__builtin_ctzll(x->free);
  if (x->free == all_free(c)) m->idle -= classes[c].bytes * classes[c].count;
  x->free &= x->free - 1;
  if (!x->free) m->open[c].len--; /* it is the last one */
  hold(m, &x->holding[i], who, purpose, bytes, classes[c].bytes);
  return x->at + i * classes[c].bytes;
}

/* ------------------------------------------------------------------ alloc and free */

static bool ready(const hn_mempool *m) { return !m->source.ready || m->source.ready(m->source.self); }

static size_t guard_of(const hn_mempool *m) { return m->source.host && !m->source.apart ? GUARD : 0; }

void *hn_mempool_alloc(hn_mempool *m, uint32_t who, hone_memory_purpose purpose, size_t bytes) {
  char *p = NULL;
  if (bytes > SIZE_MAX / 4 || !ready(m)) return NULL;
  const size_t need = (bytes ? bytes : 1) + guard_of(m);
  const uint64_t lost = hn_mem_lost();
  uint32_t c = m->source.apart ? LARGE : 0;
  while (c < SMALL && classes[c].bytes < need) c++;
  pthread_mutex_lock(&m->lock);
  if (c < SMALL) {
    p = take_small(m, c, who, purpose, bytes);
  } else {
    const size_t size = m->source.apart ? size_apart(m, need) : hn_round_up(need, PAGE);
    const bool whole = purpose == HONE_MEMORY_FOR_WEIGHTS || purpose == HONE_MEMORY_FOR_ACTIVATIONS ||
                       purpose == HONE_MEMORY_FOR_WORKSPACE;
    const found f = take_large(m, size, (wanted){whole, who});
    if (f.s) {
      block *b = &f.s->blocks.ptr[f.i];
      hold(m, &b->holding, who, purpose, bytes, b->size);
      p = f.s->at + b->at;
      if (whole && b->cleared && m->source.bring)
        m->source.bring(m->source.self, f.s->taken, f.s->taken_bytes, p, bytes);
    }
  }
  if (p) hn_mem_forgive(lost); /* refused at first and then found is no loss */
  if (p && m->source.host) ASAN_UNPOISON_MEMORY_REGION(p, bytes ? bytes : 1);
  pthread_mutex_unlock(&m->lock);
  return p;
}

/* The rest beyond large grains is in one more where as many small grains would take longer to come. */
static size_t expected_size(const hn_mempool *m, size_t size) {
  const size_t large = m->source.large_grain, rest = size % large;
  const bool one_more = rest >= large / 8 * 3 || (size >= 2 * large && rest > large / 8);
  return one_more ? hn_round_up(size, large) : hn_round_up(size, m->source.grain);
}

void hn_mempool_expect(hn_mempool *m, uint32_t who, const uint64_t *bytes, uint32_t n) {
  enum { MOST = 64 << 20 }; /* beyond, the rest of a large grain is little */
  uint64_t size = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t need = bytes[i] + guard_of(m);
    if (need > MOST) return;
    if (bytes[i] && need > classes[SMALL - 1].bytes) size += hn_round_up(need, PAGE);
  }
  if (size > MOST || m->source.apart || !m->source.large_grain || !ready(m)) return;
  const uint64_t lost = hn_mem_lost();
  pthread_mutex_lock(&m->lock);
  if (size >= m->source.large_grain / 8 * 3 && m->free_bytes + m->idle < size) {
    segment *s = grow(m, expected_size(m, size));
    if (s) s->blocks.ptr[0].expected = true, s->blocks.ptr[0].expecter = who;
  }
  hn_mem_forgive(lost); /* nobody has to have it */
  pthread_mutex_unlock(&m->lock);
}

static void free_small(hn_mempool *m, slab *x, const char *p) {
  const size_t size = classes[x->class].bytes;
  const size_t i = (size_t)(p - x->at) / size;
  if (x->free >> i & 1) return;
  if (!x->free) m->open[x->class].ptr[m->open[x->class].len++] = x;
  x->free |= (uint64_t)1 << i;
  if (x->free == all_free(x->class)) m->idle += size * classes[x->class].count;
  let_go(m, &x->holding[i], size);
  if (m->source.host) ASAN_POISON_MEMORY_REGION(x->at + i * size, size);
}

static void free_large(hn_mempool *m, segment *s, size_t i) {
  block *b = &s->blocks.ptr[i];
  if (!b->used) return;
  let_go(m, &b->holding, b->size);
  if (m->source.host) ASAN_POISON_MEMORY_REGION(s->at + b->at, b->size);
  join_free(m, s, i);
}

/* Not when the pool is made: the system takes as long to say what it has as a small model to be read. */
static void ask_keep(hn_mempool *m) {
  m->keep = m->source.keep(m->source.self);
  m->source.keep = NULL;
}

void hn_mempool_free(hn_mempool *m, void *p) {
  if (!p) return;
  if (m->source.settle) m->source.settle(m->source.self);
  pthread_mutex_lock(&m->lock);
  segment *s = segment_of(m, p);
  if (s) {
    const size_t i = block_at(s, (size_t)((char *)p - s->at));
    if (s->blocks.ptr[i].slab)
      free_small(m, s->blocks.ptr[i].slab, p);
    else
      free_large(m, s, i);
    if (m->free_bytes + m->idle > m->keep && m->source.keep) ask_keep(m);
    if (m->free_bytes + m->idle > m->keep) reclaim(m, m->keep);
  }
  pthread_mutex_unlock(&m->lock);
}

bool hn_mempool_cleared(hn_mempool *m, const void *p) {
  bool cleared = false;
  pthread_mutex_lock(&m->lock);
  const segment *s = segment_of(m, p);
  if (s) {
    const block *b = &s->blocks.ptr[block_at(s, (size_t)((const char *)p - s->at))];
    cleared = b->used && !b->slab && b->cleared;
  }
  pthread_mutex_unlock(&m->lock);
  return cleared;
}

uint64_t hn_mempool_reclaim(hn_mempool *m) {
  if (!ready(m)) return 0;
  pthread_mutex_lock(&m->lock);
  const uint64_t bytes = reclaim(m, 0);
  pthread_mutex_unlock(&m->lock);
  return bytes;
}

void hn_mempool_keep(hn_mempool *m, uint64_t bytes) {
  const bool now = ready(m);
  pthread_mutex_lock(&m->lock);
  m->keep = bytes;
  m->source.keep = NULL;
  if (now && m->free_bytes + m->idle > bytes) reclaim(m, bytes);
  pthread_mutex_unlock(&m->lock);
}

/* ------------------------------------------------------------------ what there is */

static void count_block(const block *b, hone_memory_pool *out) {
  hone_memory_class *large = &out->size_class[LARGE];
  if (!b->used) {
    large->free_blocks++;
    large->free_bytes += b->size;
    if (b->size > out->largest_free) out->largest_free = b->size;
  } else if (!b->slab) {
    large->used_blocks++;
    large->used_bytes += b->size;
  } else {
    const uint32_t c = b->slab->class;
    const uint64_t spare = (uint64_t)__builtin_popcountll(b->slab->free), size = classes[c].bytes;
    hone_memory_class *k = &out->size_class[c];
    k->free_blocks += spare;
    k->free_bytes += spare * size;
    k->used_blocks += classes[c].count - spare;
    k->used_bytes += (classes[c].count - spare) * size;
    if (spare && size > out->largest_free) out->largest_free = size;
  }
}

static void totals(const hn_mempool *m, hone_memory_pool *out) {
  *out = (hone_memory_pool){.is_host = m->source.host,
                            .used = m->used,
                            .reserved = m->reserved,
                            .high_water = m->high,
                            .reserved_high_water = m->reserved_high,
                            .taken = m->taken,
                            .given = m->given,
                            .reclaims = m->reclaims};
  memcpy(out->name, m->name, sizeof out->name);
  for (int i = 0; i < SMALL; i++) out->size_class[i].block_bytes = classes[i].bytes;
  for (size_t i = 0; i < m->segments.len; i++)
    for (size_t k = 0; k < m->segments.ptr[i]->blocks.len; k++)
      count_block(&m->segments.ptr[i]->blocks.ptr[k], out);
  for (int i = 0; i < HONE_MEMORY_CLASSES; i++) out->free_bytes += out->size_class[i].free_bytes;
  if (out->free_bytes) out->fragmentation = 1 - (double)out->largest_free / (double)out->free_bytes;
}

void hn_mempool_totals(hn_mempool *m, hone_memory_pool *out) {
  pthread_mutex_lock(&m->lock);
  totals(m, out);
  pthread_mutex_unlock(&m->lock);
}

static int larger_first(const void *a, const void *b) {
  const hone_memory_owner *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? 1 : -1;
  return x->high_water < y->high_water ? 1 : x->high_water > y->high_water ? -1 : strcmp(x->name, y->name);
}

bool hn_mempool_describe(hn_mempool *m, hone_memory_pool *out) {
  pthread_mutex_lock(&m->lock);
  totals(m, out);
  out->owner = hn_calloc(m->owners.len, sizeof *out->owner);
  for (size_t i = 0; out->owner && i < m->owners.len; i++) {
    const owner *o = &m->owners.ptr[i];
    if (!o->blocks && (!o->present || !i)) continue;
    hone_memory_owner *to = &out->owner[out->n_owners++];
    *to = (hone_memory_owner){
        .blocks = o->blocks, .used = o->used, .reserved = o->reserved, .high_water = o->high};
    memcpy(to->name, o->name, sizeof to->name);
    memcpy(to->used_for, o->used_for, sizeof to->used_for);
    if (o->reserved) to->fragmentation = 1 - (double)o->used / (double)o->reserved;
  }
  pthread_mutex_unlock(&m->lock);
  if (!out->owner) {
    *out = (hone_memory_pool){0};
    return false;
  }
  qsort(out->owner, out->n_owners, sizeof *out->owner, larger_first);
  return true;
}
