/* The pool of memory: classes, alignment, what is used again, what is given back, and many threads at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/mempool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MIBS(n) ((n)*MIB - 64 * KIB) /* a little less: with a sanitizer, blocks have guards */

/* Memory below a pool, which counts and may run out. */
typedef struct below {
  uint64_t takes, gives, bytes, most; /* most: NULL beyond it; 0: no limit */
  bool lost, crooked;                 /* crooked: not at the beginning of a page */
  uint64_t asked;                     /* how often it was asked what may stay */
} below;

static void *take(void *self, size_t bytes) {
  below *b = self;
  if (b->most && b->bytes + bytes > b->most) return NULL;
  char *p = hn_aligned(4096, bytes + 4096);
  if (!p) return NULL;
  b->takes++;
  b->bytes += bytes;
  return b->crooked ? p + 256 : p;
}

static void give(void *self, void *at, size_t bytes) {
  below *b = self;
  b->gives++;
  b->bytes -= bytes;
  hn_free((void *)((uintptr_t)at / 4096 * 4096));
}

static bool ready(void *self) { return !((below *)self)->lost; }

static uint64_t keep(void *self) { return ((below *)self)->asked++, 24 * MIB; }

static hn_mempool *create(below *b, bool apart) {
  const hn_mempool_source s = {.self = b,
                               .take = take,
                               .give = give,
                               .ready = ready,
                               .grain = 4096,
                               .large_grain = 2 * MIB,
                               .apart = apart,
                               .host = true};
  hn_mempool *m = hn_mempool_create("test", &s);
  assert_non_null(m);
  return m;
}

static void *get(hn_mempool *m, size_t bytes) {
  void *p = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, bytes);
  assert_non_null(p);
  memset(p, 0x5a, bytes);
  return p;
}

static hone_memory_pool totals(hn_mempool *m) {
  hone_memory_pool t;
  hn_mempool_totals(m, &t);
  assert_true(t.reserved >= t.used && t.reserved_high_water >= t.reserved && t.high_water >= t.used);
  assert_true(t.free_bytes <= t.reserved && t.largest_free <= t.free_bytes);
  return t;
}

/* A block that fills large grains but for half of one takes them; any other of its size small ones. */
static void large_grains_cost_half_of_one_at_most(void **state) {
  (void)state;
  const size_t sizes[] = {4 * MIB - 200000, 4 * MIB - 1200000, 2 * MIB - 4096, 2 * MIB - 1200000,
                          5 * MIB - 4096};
  const size_t reserved[] = {4 * MIB, 4 * MIB - 1200000, 2 * MIB, 2 * MIB - 1200000, 6 * MIB};
  for (int i = 0; i < 5; i++) {
    below b = {0};
    hn_mempool *m = create(&b, false);
    void *p = get(m, sizes[i]);
    assert_int_equal(totals(m).reserved, (reserved[i] + 4095) / 4096 * 4096);
    hn_mempool_free(m, p);
    hn_mempool_destroy(m);
  }
}

/* What is told before is in one segment, whatever is free in between, and small blocks do not take its place.
 */
static void expected_blocks_come_together(void **state) {
  (void)state;
  below b = {0};
  hn_mempool *m = create(&b, false);
  const uint64_t sizes[] = {MIBS(3), 500 * KIB, 400 * KIB};
  hn_mempool_expect(m, 0, sizes, 3);
  assert_int_equal(b.takes, 1);
  assert_int_equal(totals(m).reserved, 4 * MIB);
  void *small = get(m, 200); /* would else be cut of the rest */
  assert_int_equal(b.takes, 2);
  void *weights = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_WEIGHTS, sizes[0]),
       *scratch = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_WEIGHTS, 200 * KIB);
  hn_mempool_free(m, scratch);
  void *run = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_ACTIVATIONS, sizes[1]),
       *work = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_WORKSPACE, sizes[2]);
  assert_true(weights && scratch && run && work);
  assert_int_equal(b.takes, 2);
  hn_mempool_free(m, weights);
  hn_mempool_expect(m, 0, sizes, 1); /* there is room */
  assert_int_equal(b.takes, 2);
  hn_mempool_free(m, run);
  hn_mempool_free(m, work);
  hn_mempool_free(m, small);
  hn_mempool_reclaim(m);
  assert_int_equal(b.bytes, 0);

  /* Little of somebody else's would keep all of it from being given back. */
  hn_mempool_expect(m, hn_mempool_join(m, "other"), (const uint64_t[]){MIBS(40)}, 1);
  void *own = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_WEIGHTS, MIB);
  assert_true(hn_mempool_reclaim(m) >= MIBS(40));
  hn_mempool_free(m, own);
  hn_mempool_reclaim(m);
  assert_int_equal(b.bytes, 0);

  const uint64_t few[] = {70 * KIB, 0}, much[] = {UINT64_MAX, 1};
  hn_mempool_expect(m, 0, few, 2); /* small grains do */
  hn_mempool_expect(m, 0, much, 2);
  b.most = 1;
  hn_mempool_expect(m, 0, sizes, 3); /* refused, which is no failure */
  assert_int_equal(b.bytes, 0);
  hn_mempool_destroy(m);
}

/* The rest of large grains is one more where it is more than a few small ones. */
static void expected_blocks_waste_little(void **state) {
  (void)state;
  const uint64_t sizes[] = {MIB, 3 * MIB / 2 - 64 * KIB, 4 * MIB, 4 * MIB + 200 * KIB};
  for (int i = 0; i < 4; i++) {
    below b = {0};
    hn_mempool *m = create(&b, false);
    hn_mempool_expect(m, 0, &sizes[i], 1);
    const uint64_t got = totals(m).reserved;
    if (i < 2)
      assert_int_equal(got, 2 * MIB);
    else
      assert_true(got >= sizes[i] && got <= sizes[i] + 2 * 4096);
    hn_mempool_destroy(m);
  }
}

static void sizes_have_classes(void **state) {
  (void)state;
  const size_t sizes[] = {0, 1, 900, 3000, 4000, 12000, 16000, 60000, 64001, 70000, 1000000, 9 * MIB};
  enum { N = sizeof sizes / sizeof *sizes };
  below b = {0};
  hn_mempool *m = create(&b, false);
  void *p[N];
  uint64_t used = 0;
  for (int i = 0; i < N; i++) {
    p[i] = get(m, sizes[i]);
    used += sizes[i];
    assert_int_equal((uintptr_t)p[i] % (sizes[i] < 900 + 1 ? 512 : 4096), 0);
    for (int k = 0; k < i; k++)
      assert_true((char *)p[k] + sizes[k] <= (char *)p[i] || (char *)p[i] + sizes[i] <= (char *)p[k]);
  }
  hone_memory_pool t = totals(m);
  const uint64_t bytes[] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 0}, blocks[] = {3, 2, 2, 2, 3};
  for (int i = 0; i < HONE_MEMORY_CLASSES; i++) {
    assert_int_equal(t.size_class[i].block_bytes, bytes[i]);
    if (i < 4) assert_int_equal(t.size_class[i].used_bytes, bytes[i] * blocks[i]);
    assert_int_equal(t.size_class[i].used_blocks, blocks[i]);
  }
  assert_int_equal(t.used, used);
  assert_int_equal(t.high_water, used);
  assert_string_equal(t.name, "test");
  for (int i = 0; i < N; i++) hn_mempool_free(m, p[(i * 5) % N]);
  t = totals(m);
  assert_int_equal(t.used, 0);
  assert_int_equal(t.free_bytes, t.reserved);
  hn_mempool_reclaim(m);
  assert_int_equal(totals(m).reserved, 0);
  assert_int_equal(b.bytes, 0);
  assert_int_equal(b.takes, b.gives);
  hn_mempool_destroy(m);
}

/* What was freed is found again, whatever the order; blocks side by side become one. */
static void freed_blocks_are_used_again(void **state) {
  (void)state;
  for (int apart = 0; apart < 2; apart++) {
    below b = {0};
    hn_mempool *m = create(&b, apart);
    uint64_t takes = 0;
    for (int round = 0; round < 6; round++) {
      void *p[40];
      for (int i = 0; i < 40; i++) p[i] = get(m, 100 + (size_t)i * i * 700);
      for (int i = 0; i < 40; i++) hn_mempool_free(m, p[(i * 7) % 40]);
      if (!round) takes = b.takes;
      assert_int_equal(b.takes, takes);
    }
    assert_int_equal(b.gives, 0);
    hn_mempool_destroy(m);
    assert_int_equal(b.takes, b.gives);
  }
  below b = {0};
  hn_mempool *m = create(&b, false);
  char *whole = get(m, 8 * MIB - 64 * KIB), *part[3];
  hn_mempool_free(m, whole);
  assert_int_equal(b.takes, 1);
  for (int i = 0; i < 3; i++) part[i] = get(m, 2 * MIB + 4 * KIB);
  assert_int_equal(b.takes, 1);
  hn_mempool_free(m, part[0]);
  hn_mempool_free(m, part[2]);
  assert_true(totals(m).fragmentation > 0.3 && totals(m).fragmentation < 0.4);
  hn_mempool_free(m, part[1]);
  assert_true(totals(m).fragmentation == 0);
  assert_ptr_equal(get(m, 8 * MIB - 64 * KIB), whole);
  assert_int_equal(b.takes, 1);
  hn_mempool_free(m, whole);
  /* a small block does not take the place of a large one */
  void *small = get(m, 100 * KIB);
  assert_ptr_equal(get(m, 8 * MIB - 64 * KIB), whole);
  hn_mempool_free(m, small);
  hn_mempool_destroy(m);
}

static void free_memory_is_given_back(void **state) {
  (void)state;
  below b = {0};
  hn_mempool *m = create(&b, false);
  void *small = get(m, 2000), *a = get(m, MIBS(10)), *c = get(m, MIBS(20));
  hn_mempool_free(m, a);
  assert_int_equal(totals(m).reclaims, 0);
  /* growth: what is free is too small, and goes rather than that the pool becomes larger than ever */
  void *d = get(m, MIBS(30));
  assert_int_equal(totals(m).reclaims, 1);
  assert_true(b.bytes < 52 * MIB);
  hn_mempool_free(m, c);
  hn_mempool_free(m, d);
  /* a bound: what is beyond it goes at once, and later when it is freed */
  hn_mempool_keep(m, 25 * MIB);
  assert_true(totals(m).free_bytes <= 31 * MIB && totals(m).free_bytes > 0);
  hn_mempool_keep(m, 0);
  c = get(m, MIBS(5));
  hn_mempool_free(m, c);
  assert_true(b.bytes < MIB);
  hn_mempool_keep(m, UINT64_MAX);
  c = get(m, MIBS(5));
  hn_mempool_free(m, c);
  assert_true(hn_mempool_reclaim(m) >= MIBS(5));
  assert_int_equal(hn_mempool_reclaim(m), 0);
  hn_mempool_keep(m, 0);
  hn_mempool_free(m, small); /* the last of its class: the others go with it */
  assert_int_equal(b.bytes, 0);
  hn_mempool_destroy(m);
}

/* The source says how much may stay free, once, when there is more than a little. */
static void a_source_is_asked_what_may_stay(void **state) {
  (void)state;
  for (int later = 0; later < 2; later++) {
    below b = {0};
    const hn_mempool_source s = {
        .self = &b, .take = take, .give = give, .grain = 4096, .keep = keep, .host = true};
    hn_mempool *m = hn_mempool_create("test", &s);
    assert_non_null(m);
    void *a = get(m, MIBS(10)), *c = get(m, MIBS(9)), *d = get(m, MIBS(9));
    hn_mempool_free(m, a);
    assert_int_equal(b.asked, 0);
    if (later) hn_mempool_keep(m, 12 * MIB); /* who says so is not overruled */
    hn_mempool_free(m, c);
    assert_int_equal(b.asked, !later);
    assert_int_equal(totals(m).reclaims, later);
    hn_mempool_free(m, d);
    assert_int_equal(b.asked, !later);
    assert_true(totals(m).reclaims >= 1 && totals(m).free_bytes <= (later ? 12 : 24) * MIB);
    hn_mempool_destroy(m);
  }
}

/* When the source has no more, what is free goes back to it and it is asked again. */
static void a_source_that_ran_out_is_asked_again(void **state) {
  (void)state;
  below b = {.most = 32 * MIB};
  hn_mempool *m = create(&b, false);
  void *a = get(m, MIBS(10)), *c = get(m, MIBS(10)), *d = get(m, MIBS(10));
  assert_null(hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, MIBS(9)));
  hn_mempool_free(m, a);
  hn_mempool_free(m, c);
  void *e = get(m, MIBS(18));
  assert_int_equal(totals(m).reclaims, 1);
  hn_mempool_free(m, d);
  hn_mempool_free(m, e);
  assert_null(hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, 40 * MIB));
  assert_null(hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, SIZE_MAX));
  b.lost = true;
  assert_null(hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, 10));
  b.lost = false;
  hn_mempool_free(m, get(m, 10));
  hn_mempool_destroy(m);
  assert_int_equal(b.bytes, 0);
}

/* Every allocation below fails once: an answer without memory, or with it and nothing noted as lost. */
static void every_allocation_may_fail(void **state) {
  (void)state;
  const size_t sizes[] = {10, 3000, 5 * MIB, 70 * KIB, 2 * MIB, 60 * KIB};
  enum { N = sizeof sizes / sizeof *sizes };
  bool reached = true;
  unsigned refused = 0, rescued = 0;
  for (uint64_t at = 1; reached; at++) {
    below b = {0};
    hn_mempool *m = create(&b, false);
    void *p[N];
    hn_mempool_free(m, hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, 60 * MIB)); /* something to give back */
    const uint64_t lost = hn_mem_lost();
    unsigned missing = 0;
    hn_mem_fail_after(at);
    for (int i = 0; i < N; i++)
      missing += (p[i] = hn_mempool_alloc(m, 0, HONE_MEMORY_FOR_OTHER, sizes[i])) == NULL;
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_int_equal(missing, hn_mem_lost() - lost);
    assert_true(missing <= reached);
    refused += missing;
    rescued += reached && !missing;
    for (int i = 0; i < N; i++) hn_mempool_free(m, p[i]);
    assert_int_equal(totals(m).used, 0);
    hn_mempool_destroy(m);
    assert_int_equal(b.bytes, 0);
  }
  assert_true(refused > 3 && rescued >= 1);
}

static void owners_are_told_apart(void **state) {
  (void)state;
  below b = {0};
  hone_memory_pool t;
  hn_mempool *m = create(&b, false);
  const uint32_t one = hn_mempool_join(m, "one"), two = hn_mempool_join(m, "two");
  assert_true(one && two && one != two);
  void *p = hn_mempool_alloc(m, one, HONE_MEMORY_FOR_WEIGHTS, 100000),
       *q = hn_mempool_alloc(m, two, HONE_MEMORY_FOR_IO, 3000),
       *r = hn_mempool_alloc(m, one, HONE_MEMORY_FOR_WORKSPACE, 200000), *s = get(m, 10);
  hn_mempool_free(m, r);
  assert_true(hn_mempool_describe(m, &t));
  assert_int_equal(t.n_owners, 3);
  assert_string_equal(t.owner[0].name, "one");
  assert_int_equal(t.owner[0].used, 100000);
  assert_int_equal(t.owner[0].high_water, 300000);
  assert_int_equal(t.owner[0].used_for[HONE_MEMORY_FOR_WEIGHTS], 100000);
  assert_int_equal(t.owner[0].used_for[HONE_MEMORY_FOR_WORKSPACE], 0);
  assert_true(t.owner[0].reserved >= 100000 && t.owner[0].fragmentation < 0.1);
  assert_string_equal(t.owner[1].name, "two");
  assert_int_equal(t.owner[1].reserved, 4096);
  assert_true(t.owner[1].fragmentation > 0.2 && t.owner[1].fragmentation < 0.3);
  assert_string_equal(t.owner[2].name, "");
  hn_free(t.owner);
  hn_mempool_leave(m, two); /* still holds something: its row stays, and is nobody else's */
  assert_int_not_equal(hn_mempool_join(m, "three"), two);
  assert_true(hn_mempool_describe(m, &t));
  assert_int_equal(t.n_owners, 4);
  hn_free(t.owner);
  hn_mempool_free(m, q);
  assert_int_equal(hn_mempool_join(m, "four"), two);
  hn_mempool_free(m, p);
  hn_mempool_free(m, s);
  hn_mempool_destroy(m);
}

static void memory_that_is_not_aligned_is_aligned(void **state) {
  (void)state;
  below b = {.crooked = true};
  hn_mempool *m = create(&b, false);
  void *p = get(m, 100 * KIB), *q = get(m, 10), *r = get(m, 5 * MIB);
  assert_int_equal((uintptr_t)p % 4096, 0);
  assert_int_equal((uintptr_t)q % 512, 0);
  assert_int_equal((uintptr_t)r % 4096, 0);
  hn_mempool_free(m, p);
  hn_mempool_free(m, q);
  hn_mempool_free(m, r);
  hn_mempool_destroy(m);
  assert_int_equal(b.bytes, 0);
}

typedef struct hand {
  hn_mempool *m;
  unsigned seed;
  bool good;
} hand;

static void *work(void *arg) {
  hand *h = arg;
  unsigned char *p[16] = {0};
  size_t n[16] = {0};
  const uint32_t me = hn_mempool_join(h->m, "hand");
  h->good = me > 0;
  for (int i = 0; i < 4000 && h->good; i++) {
    h->seed = h->seed * 1103515245u + 12345u;
    const unsigned k = h->seed >> 8 & 15;
    if (p[k]) h->good = p[k][0] == k && p[k][n[k] - 1] == k;
    hn_mempool_free(h->m, p[k]);
    n[k] = 1 + ((size_t)1 << (h->seed >> 12 & 15)) + (h->seed >> 16 & 1023);
    p[k] = hn_mempool_alloc(h->m, me, HONE_MEMORY_FOR_LATE, n[k]);
    if (!p[k]) h->good = false;
    if (p[k]) p[k][0] = p[k][n[k] - 1] = (unsigned char)k;
    if (i % 500 == 0) hn_mempool_reclaim(h->m);
    if (i % 600 == 0) {
      hone_memory_pool t;
      hn_mempool_totals(h->m, &t);
      h->good = h->good && t.used <= t.reserved;
    }
  }
  for (int k = 0; k < 16; k++) hn_mempool_free(h->m, p[k]);
  hn_mempool_leave(h->m, me);
  return NULL;
}

static void many_threads_share_one(void **state) {
  (void)state;
  below b = {0};
  hn_mempool *m = create(&b, false);
  pthread_t thread[4];
  hand h[4];
  for (unsigned i = 0; i < 4; i++) {
    h[i] = (hand){m, i + 1, false};
    assert_int_equal(pthread_create(&thread[i], NULL, work, &h[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(thread[i], NULL);
    assert_true(h[i].good);
  }
  assert_int_equal(totals(m).used, 0);
  hn_mempool_reclaim(m);
  assert_int_equal(b.bytes, 0);
  hn_mempool_destroy(m);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static void *take_cleared(void *self, size_t bytes) {
  char *p = take(self, bytes);
  return p ? memset(p, 0, bytes) : NULL;
}

/* What nobody had before is as the source gave it; what was used again is not, nor what was joined with it.
 */
static void memory_is_cleared_once(void **state) {
  (void)state;
  below b = {0};
  const hn_mempool_source s = {.self = &b,
                               .take = take_cleared,
                               .give = give,
                               .grain = 4096,
                               .large_grain = 2 * MIB,
                               .cleared = 4 * MIB,
                               .host = true};
  hn_mempool *m = hn_mempool_create("test", &s);
  void *small = get(m, 100), *middle = get(m, MIB), *large = get(m, MIBS(6)), *rest = get(m, MIBS(2));
  assert_false(hn_mempool_cleared(m, small));
  assert_false(hn_mempool_cleared(m, middle));
  assert_true(hn_mempool_cleared(m, large));
  hn_mempool_free(m, large);
  large = get(m, MIBS(6));
  assert_false(hn_mempool_cleared(m, large));
  hn_mempool_free(m, small), hn_mempool_free(m, middle), hn_mempool_free(m, large), hn_mempool_free(m, rest);
  hn_mempool_destroy(m);
  assert_int_equal(b.takes, b.gives);
}

static char *brought;
static size_t brought_bytes;

static void bring(void *self, void *segment, size_t segment_bytes, void *at, size_t bytes) {
  (void)self;
  assert_true((char *)at >= (char *)segment && (char *)at + bytes <= (char *)segment + segment_bytes);
  brought = at;
  brought_bytes = bytes;
}

/* Pages come together where the whole block will be written, and are not there yet. */
static void what_will_be_written_whole_is_brought(void **state) {
  (void)state;
  const hone_memory_purpose purposes[] = {HONE_MEMORY_FOR_WEIGHTS, HONE_MEMORY_FOR_ACTIVATIONS,
                                          HONE_MEMORY_FOR_WORKSPACE, HONE_MEMORY_FOR_OTHER,
                                          HONE_MEMORY_FOR_IO};
  for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++) {
    below b = {0};
    const hn_mempool_source s = {.self = &b,
                                 .take = take_cleared,
                                 .give = give,
                                 .bring = bring,
                                 .grain = 4096,
                                 .cleared = MIB,
                                 .host = true};
    hn_mempool *m = hn_mempool_create("test", &s);
    for (int again = 0; again < 2; again++) {
      brought = NULL;
      char *p = hn_mempool_alloc(m, 0, purposes[i], MIB + 5);
      assert_non_null(p);
      assert_true(brought == (i < 3 && !again ? p : NULL));
      if (brought) assert_int_equal(brought_bytes, MIB + 5);
      hn_mempool_free(m, p);
    }
    hn_mempool_destroy(m);
  }
}

/* The sanitizer knows what nobody holds, and where blocks end. */
static void freed_memory_is_out_of_bounds(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  below b = {0};
  hn_mempool *m = create(&b, false);
  const size_t sizes[] = {1000, 1024, 100000, 131072};
  for (int i = 0; i < 4; i++) {
    char *p = get(m, sizes[i]);
    assert_false(__asan_address_is_poisoned(p) || __asan_address_is_poisoned(p + sizes[i] - 1));
    assert_true(__asan_address_is_poisoned(p + sizes[i]));
    hn_mempool_free(m, p);
    assert_true(__asan_address_is_poisoned(p) && __asan_address_is_poisoned(p + sizes[i] / 2));
  }
  hn_mempool_destroy(m);
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_grains_cost_half_of_one_at_most),
      cmocka_unit_test(expected_blocks_come_together),
      cmocka_unit_test(expected_blocks_waste_little),
      cmocka_unit_test(sizes_have_classes),
      cmocka_unit_test(freed_blocks_are_used_again),
      cmocka_unit_test(free_memory_is_given_back),
      cmocka_unit_test(a_source_is_asked_what_may_stay),
      cmocka_unit_test(a_source_that_ran_out_is_asked_again),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(owners_are_told_apart),
      cmocka_unit_test(memory_that_is_not_aligned_is_aligned),
      cmocka_unit_test(many_threads_share_one),
      cmocka_unit_test(memory_is_cleared_once),
      cmocka_unit_test(what_will_be_written_whole_is_brought),
      cmocka_unit_test(freed_memory_is_out_of_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
