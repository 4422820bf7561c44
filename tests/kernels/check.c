/* Helpers that the family adapters use: values, guarded memory, comparisons, timing. */
#include "check_internal.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN_FAILURES = 5 };
static const unsigned char pattern = 0xa5;

const char *ck_fill_name(enum ck_fill f) {
  static const char *const names[CK_FILLS] = {"random", "special", "zeros", "denormal", "wide"};
  return (unsigned)f < CK_FILLS ? names[f] : "?";
}

/* Where a run is not to see all kinds, what a kind shows of one case it shows of the next: a kernel's first
 * loop over them has more than the first kind, and every eighth after it. */
int ck_fills(ck *c) { return c->fills < CK_FILLS && c->fill_loops++ % 8 ? 1 : c->fills; }

uint64_t ck_random(ck *c) {
  c->random ^= c->random << 13;
  c->random ^= c->random >> 7;
  c->random ^= c->random << 17;
  return c->random;
}

static double unit(ck *c) { return (double)(ck_random(c) >> 11) * 0x1p-53; }

/* Of either sign, with any of its bits set: sums of integers over a NaN carry. */
static float not_a_number(uint64_t r) {
  static const uint32_t bits[] = {0x7fc00000, 0x7fffffff, 0xffc00000, 0xffffffff, 0x7fc00001};
  float x;
  memcpy(&x, &bits[r % (sizeof bits / sizeof *bits)], sizeof x);
  return x;
}

static float value(ck *c, enum ck_fill f) {
  double u = unit(c) * 2 - 1;
  uint64_t r = ck_random(c);
  switch (f) {
  case CK_ZEROS: return r & 1 ? 0.0f : -0.0f;
  case CK_DENORMAL: return (float)(u * (r % 8 ? 1e-39 : 3e-38));
  case CK_SPECIAL:
    return r % 61 == 0 ? (r & 64 ? INFINITY : -INFINITY) : r % 67 == 1 ? not_a_number(r / 67) : (float)u;
  case CK_WIDE: return (float)ldexp(u, (int)(r % 41) - 20);
  default: return (float)u;
  }
}

void ck_fill(ck *c, float *x, size_t n, enum ck_fill f) {
  for (size_t i = 0; i < n; i++) x[i] = value(c, f);
}

/* Pages that cases are done with, by their number: a run asks for hundreds of thousands of buffers, and a
 * guard page of each costs three calls to the system. */
enum { SPARE_PAGES = 64 };
static ck_block *spare[SPARE_PAGES];

/* body bytes, whole pages, and a guard page behind them. */
static ck_block *map_pages(size_t body, size_t page) {
  ck_block **kept = body / page < SPARE_PAGES ? &spare[body / page] : NULL;
  ck_block *b = kept ? *kept : NULL;
  if (b) {
    *kept = b->next;
    return b;
  }
  b = malloc(sizeof *b);
  unsigned char *map =
      b ? mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (map == MAP_FAILED || mprotect(map + body, page, PROT_NONE)) return NULL;
  b->map = map, b->map_bytes = body + page;
  return b;
}

static void give_pages(ck_block *b, size_t page) {
  const size_t pages = b->map_bytes / page - 1;
  if (pages < SPARE_PAGES) {
    b->next = spare[pages];
    spare[pages] = b;
    return;
  }
  munmap(b->map, b->map_bytes);
  free(b);
}

float *ck_alloc(ck *c, size_t n, size_t misalign) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE),
         body = ((n + misalign) * sizeof(float) + 64 + page - 1) / page * page;
  ck_block *b = map_pages(body, page);
  if (!b) {
    fprintf(stderr, "check_kernels: out of memory for %zu floats\n", n);
    exit(6);
  }
  memset(b->map, pattern, body);
  b->data = (float *)(void *)(b->map + body) - n - misalign;
  b->n = n, b->misalign = misalign, b->next = c->blocks;
  c->blocks = b;
  return b->data;
}

static void fail(ck *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(ck *c, const char *fmt, ...) {
  if (c->failures++ >= SHOWN_FAILURES) return;
  va_list ap;
  va_start(ap, fmt);
  printf("FAIL %s: %s: ", c->kernel->name, c->label);
  vprintf(fmt, ap);
  putchar('\n');
  va_end(ap);
  if (c->on_failure) c->on_failure(c);
}

/* The first byte from p on that is not the pattern any more, or end. By words: this looks at a page a buffer.
 */
static const unsigned char *first_written(const unsigned char *p, const unsigned char *end) {
  uint64_t word, want = pattern * UINT64_C(0x0101010101010101);
  for (; end - p >= 8; p += 8) {
    memcpy(&word, p, 8);
    if (word != want) break;
  }
  while (p < end && *p == pattern) p++;
  return p;
}

void ck_release_all(ck *c) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (ck_block *b = c->blocks, *next; b; b = next) {
    next = b->next;
    const unsigned char *first = (const unsigned char *)b->data,
                        *last = (const unsigned char *)(b->data + b->n);
    const unsigned char *end = last + b->misalign * sizeof(float);
    const unsigned char *p = first_written(b->map, first);
    if (p < first) fail(c, "wrote %zu bytes before a buffer", (size_t)(first - p));
    p = first_written(last, end);
    if (p < end) fail(c, "wrote %zu bytes past a buffer", (size_t)(p - last + 1));
    give_pages(b, page);
  }
  c->blocks = NULL;
}

void ck_case(ck *c, const char *fmt, ...) {
  va_list ap;
  c->cases++;
  va_start(ap, fmt);
  vsnprintf(c->label, sizeof c->label, fmt, ap);
  va_end(ap);
}

static bool unwritten(float x) {
  uint32_t bits, want = pattern * 0x01010101u;
  memcpy(&bits, &x, 4);
  return bits == want;
}

void ck_near(ck *c, size_t index, float got, double want, double bound) {
  c->comparisons++;
  if (unwritten(got)) {
    fail(c, "element %zu was not written", index);
    return;
  }
  if (isnan(want) || isnan(got)) {
    if (!isnan(want) || !isnan(got)) fail(c, "element %zu: got %g, want %g", index, (double)got, want);
    return;
  }
  if (isinf(want) || isinf(got)) {
    /* A finite result beyond FLT_MAX may round to infinity. */
    bool same = isinf(got) && (isinf(want) ? (want > 0) == (got > 0) : fabs(want) + bound > FLT_MAX);
    if (!same) fail(c, "element %zu: got %g, want %g", index, (double)got, want);
    return;
  }
  double error = fabs((double)got - want);
  if (!(error <= bound))
    fail(c, "element %zu: got %.9g, want %.9g, error %.3g above the bound %.3g", index, (double)got, want,
         error, bound);
}

void ck_same(ck *c, size_t index, float got, float want) {
  c->comparisons++;
  if (unwritten(got) && !unwritten(want))
    fail(c, "element %zu was not written", index);
  else if (isnan(want) ? !isnan(got) : got != want)
    fail(c, "element %zu: got %.9g, want %.9g", index, (double)got, (double)want);
}

void ck_true(ck *c, bool ok, const char *what) {
  c->comparisons++;
  if (!ok) fail(c, "%s", what);
}

void ck_lacks(ck *c, const char *feature) { c->lacks = feature; }

bool ck_failed(const ck *c) { return c->failures > 0; }

double ck_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double ck_time(void (*fn)(void *), void *arg) {
  double start = ck_now();
  fn(arg);
  double once = ck_now() - start, best = once;
  int calls = once < 2e-4 ? (int)(2e-4 / (once + 1e-9)) + 1 : 1;
  for (double end = start + 0.05; ck_now() < end;) {
    double t = ck_now();
    for (int i = 0; i < calls; i++) fn(arg);
    t = (ck_now() - t) / calls;
    if (t < best) best = t;
  }
  return best;
}
