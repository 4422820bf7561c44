#include "mutate_proto.h"

#include "base/rng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 4096, MAX_DEPTH = 12 };

typedef struct field {
  size_t start, payload, end; /* of the whole field; payload: after tag (and length) */
  uint32_t wire;
  int parent; /* index of the field around it, -1: none */
} field;

typedef struct tree {
  field f[MAX_FIELDS];
  int n;
} tree;

static bool read_varint(const uint8_t *d, size_t end, size_t *at, uint64_t *v) {
  *v = 0;
  for (int shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t b = d[(*at)++];
    *v |= (uint64_t)(b & 0x7f) << shift;
    if (!(b & 0x80)) return true;
  }
  return false;
}

/* Records the fields of [at, end); false when the bytes are no sequence of fields. */
static bool parse(tree *t, const uint8_t *d, size_t at, size_t end, int parent, int depth) {
  int before = t->n;
  while (at < end && t->n < MAX_FIELDS) {
    field f = {.start = at, .parent = parent};
    uint64_t tag, len;
    if (!read_varint(d, end, &at, &tag) || tag >> 3 == 0 || tag >> 3 > 100) goto no;
    f.wire = tag & 7;
    f.payload = at;
    if (f.wire == 0) {
      if (!read_varint(d, end, &at, &len)) goto no;
    } else if (f.wire == 1 || f.wire == 5) {
      size_t n = f.wire == 1 ? 8 : 4;
      if (end - at < n) goto no;
      at += n;
    } else if (f.wire == 2) {
      if (!read_varint(d, end, &at, &len) || len > end - at) goto no;
      f.payload = at;
      at += len;
    } else
      goto no;
    f.end = at;
    int me = t->n;
    t->f[t->n++] = f;
    if (f.wire == 2 && depth < MAX_DEPTH && f.end > f.payload) {
      int mark = t->n;
      if (!parse(t, d, f.payload, f.end, me, depth + 1)) t->n = mark;
    }
  }
  return true;
no:
  t->n = before;
  return false;
}

static size_t put_varint(uint8_t *out, uint64_t v) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (uint8_t)(v | 0x80);
  out[n++] = (uint8_t)v;
  return n;
}

/* Replaces data[from, to) by bytes; returns the new size or 0 when it does not fit. */
static size_t splice(uint8_t *d, size_t size, size_t max, size_t from, size_t to, const uint8_t *bytes, size_t n) {
  if (size - (to - from) + n > max) return 0;
  memmove(d + from + n, d + to, size - to);
  if (n) memcpy(d + from, bytes, n);
  return size - (to - from) + n;
}

/* Rewrites the lengths of the fields around a place where `delta` bytes appeared; innermost first. */
static size_t fix_lengths(uint8_t *d, size_t size, size_t max, const tree *t, int parent, long delta) {
  for (; parent >= 0; parent = t->f[parent].parent) {
    const field *f = &t->f[parent];
    size_t at = f->start, tag_end;
    uint64_t tag, old;
    if (!read_varint(d, size, &at, &tag)) return size;
    tag_end = at;
    if (!read_varint(d, size, &at, &old)) return size;
    uint8_t bytes[10];
    size_t n = put_varint(bytes, (uint64_t)((long)(f->end - f->payload) + delta));
    size_t now = splice(d, size, max, tag_end, at, bytes, n);
    if (!now) return size;
    delta += (long)n - (long)(at - tag_end);
    size = now;
  }
  return size;
}

static uint64_t interesting(hn_rng *r) {
  static const uint64_t v[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, 127, 128, 255, 256, 1000, 65535, 1u << 20, 0x7fffffff, 0x80000000u,
                               UINT64_MAX, UINT64_MAX - 1, INT64_MAX, (uint64_t)INT64_MAX + 1};
  return hn_rng_below(r, 3) ? v[hn_rng_below(r, sizeof v / sizeof *v)] : hn_rng_u64(r) >> hn_rng_below(r, 64);
}

size_t mutate_proto(uint8_t *data, size_t size, size_t max, unsigned seed) {
  static tree t;
  hn_rng r = {seed};
  t.n = 0;
  if (!size || !parse(&t, data, 0, size, -1, 0) || !t.n) return 0;
  const field *f = &t.f[hn_rng_below(&r, (uint64_t)t.n)];
  size_t now = 0, len = f->end - f->start;
  uint8_t *copy;
  switch (hn_rng_below(&r, 6)) {
  case 0: /* drop it */
    now = splice(data, size, max, f->start, f->end, NULL, 0);
    return now ? fix_lengths(data, now, max, &t, f->parent, -(long)len) : 0;
  case 1: /* say it twice */
    if (!(copy = malloc(len))) return 0;
    memcpy(copy, data + f->start, len);
    now = splice(data, size, max, f->end, f->end, copy, len);
    free(copy);
    return now ? fix_lengths(data, now, max, &t, f->parent, (long)len) : 0;
  case 2: { /* another field in its place */
    const field *g = &t.f[hn_rng_below(&r, (uint64_t)t.n)];
    size_t n = g->end - g->start;
    if (!(copy = malloc(n))) return 0;
    memcpy(copy, data + g->start, n);
    now = splice(data, size, max, f->start, f->end, copy, n);
    free(copy);
    return now ? fix_lengths(data, now, max, &t, f->parent, (long)n - (long)len) : 0;
  }
  case 3: /* another field number */
    data[f->start] = (uint8_t)((data[f->start] & 7) | (1 + hn_rng_below(&r, 15)) << 3);
    return size;
  default:
    if (f->wire == 0) {
      uint8_t bytes[10];
      size_t n = put_varint(bytes, interesting(&r));
      now = splice(data, size, max, f->payload, f->end, bytes, n);
      return now ? fix_lengths(data, now, max, &t, f->parent, (long)n - (long)(f->end - f->payload)) : 0;
    }
    if (f->end == f->payload) return 0;
    data[f->payload + hn_rng_below(&r, f->end - f->payload)] = (uint8_t)hn_rng_u64(&r);
    return size;
  }
}
