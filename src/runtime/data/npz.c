/* NumPy's .npz: a zip file of .npy files, stored or deflated. Only what NumPy writes is read; every offset is
 * checked, and an entry that would grow beyond the caller's limit or deflate's largest ratio is refused
 * before it is inflated. */
#include "base/late/late.h"
#include "base/late/zlib.h"
#include "runtime/data/data.h"

#include <stdio.h>
#include <string.h>

typedef struct entry {
  char name[256]; /* without .npy */
  uint32_t method, crc;
  uint64_t packed, size, offset;
} entry;

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32; }

static hone_status bad(hone_error *error, const char *what) {
  return hn_fail(error, HONE_ERROR_INPUT, "bad .npz file: %s", what);
}

/* The central directory: where it starts and how many entries it has. */
static hone_status find_directory(hn_bytes zip, uint64_t *at, uint64_t *count, hone_error *error) {
  if (zip.size < 22) return bad(error, "too short for a zip file");
  size_t lowest = zip.size > 65557 ? zip.size - 65557 : 0;
  for (size_t p = zip.size - 22 + 1; p-- > lowest;) {
    if (u32(zip.data + p) != 0x06054b50) continue;
    *count = u16(zip.data + p + 10);
    *at = u32(zip.data + p + 16);
    if (*at == 0xffffffff && p >= 20 && u32(zip.data + p - 20) == 0x07064b50) { /* zip64 */
      uint64_t q = u64(zip.data + p - 12);
      if (q > zip.size || zip.size - q < 56 || u32(zip.data + q) != 0x06064b50)
        return bad(error, "broken zip64 record");
      *count = u64(zip.data + q + 32);
      *at = u64(zip.data + q + 48);
    }
    if (*count > 65536) return bad(error, "more than 65536 entries");
    return HONE_OK;
  }
  return bad(error, "no zip directory (cut off?)");
}

/* Reads the directory entry at *at and moves on. */
static hone_status next_entry(hn_bytes zip, uint64_t *at, entry *e, hone_error *error) {
  if (*at > zip.size || zip.size - *at < 46 || u32(zip.data + *at) != 0x02014b50)
    return bad(error, "broken directory");
  const uint8_t *p = zip.data + *at;
  size_t n = u16(p + 28), extra = u16(p + 30), comment = u16(p + 32);
  if (zip.size - *at - 46 < n + extra + comment) return bad(error, "directory is cut off");
  *e = (entry){.method = u16(p + 10),
               .crc = u32(p + 16),
               .packed = u32(p + 20),
               .size = u32(p + 24),
               .offset = u32(p + 42)};
  size_t keep = n < sizeof e->name - 1 ? n : sizeof e->name - 1;
  memcpy(e->name, p + 46, keep);
  e->name[keep] = 0;
  if (keep > 4 && strcmp(e->name + keep - 4, ".npy") == 0) e->name[keep - 4] = 0;
  for (const uint8_t *x = p + 46 + n, *end = x + extra; end - x >= 4; x += 4 + u16(x + 2)) { /* zip64 sizes */
    if (u16(x) != 1 || end - x - 4 < u16(x + 2)) continue;
    const uint8_t *v = x + 4, *stop = v + u16(x + 2);
    if (e->size == 0xffffffff && stop - v >= 8) e->size = u64(v), v += 8;
    if (e->packed == 0xffffffff && stop - v >= 8) e->packed = u64(v), v += 8;
    if (e->offset == 0xffffffff && stop - v >= 8) e->offset = u64(v);
  }
  *at += 46 + n + extra + comment;
  return HONE_OK;
}

static hone_status inflate_entry(hn_bytes packed, uint8_t *out, size_t size, hone_error *error) {
  z_stream z = {.next_in = (Bytef *)packed.data, .next_out = out};
  hn_mem_foreign_begin();
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return hn_fail(error, HONE_ERROR_MEMORY, "cannot start zlib");
  size_t in_left = packed.size, out_left = size;
  int r = Z_OK;
  while (r == Z_OK && (in_left || z.avail_in || z.avail_out == 0)) {
    if (!z.avail_in) z.avail_in = in_left > 1u << 30 ? 1u << 30 : (uInt)in_left, in_left -= z.avail_in;
    if (!z.avail_out) z.avail_out = out_left > 1u << 30 ? 1u << 30 : (uInt)out_left, out_left -= z.avail_out;
    if (!z.avail_out) break; /* more data than declared */
    r = inflate(&z, Z_NO_FLUSH);
  }
  bool whole = r == Z_STREAM_END && !z.avail_out && !out_left;
  if (r == Z_OK && !z.avail_out && !out_left) { /* full: only the end mark may be left */
    uint8_t extra;
    z.next_out = &extra, z.avail_out = 1;
    if (!z.avail_in && in_left) z.avail_in = (uInt)(in_left > 64 ? 64 : in_left);
    whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 1;
  }
  if (!whole) hn_mem_foreign_end();
  inflateEnd(&z);
  return whole ? HONE_OK : bad(error, "an entry does not inflate to its declared size");
}

/* Where the bytes of an entry are; nothing is read of them. */
static hone_status locate(hn_bytes zip, const entry *e, uint64_t limit, hn_npz_member *out,
                          hone_error *error) {
  if (e->offset > zip.size || zip.size - e->offset < 30 || u32(zip.data + e->offset) != 0x04034b50)
    return bad(error, "broken entry header");
  const uint8_t *p = zip.data + e->offset;
  uint64_t start = e->offset + 30 + u16(p + 26) + u16(p + 28);
  if (u16(p + 6) & 1) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "encrypted .npz entry '%.64s'", e->name);
  if (start > zip.size || zip.size - start < e->packed) return bad(error, "entry is cut off");
  if (e->method != 0 && e->method != 8)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, ".npz entry '%.64s' uses compression method %u", e->name,
                   e->method);
  /* Deflate never does better than 1032 to 1. */
  if (e->size > limit || (e->method == 8 && e->size / 1032 > e->packed) ||
      (e->method == 0 && e->size != e->packed)) {
    hn_fail(error, HONE_ERROR_INPUT, ".npz entry '%.64s' claims more data than it can have", e->name);
    hn_error_got(error, "%llu bytes from %llu", (unsigned long long)e->size, (unsigned long long)e->packed);
    hn_error_expected(error, "at most %llu bytes", (unsigned long long)limit);
    return HONE_ERROR_INPUT;
  }
  *out = (hn_npz_member){.packed = {zip.data + start, (size_t)e->packed},
                         .size = (size_t)e->size,
                         .crc = e->crc,
                         .deflated = e->method == 8};
  return HONE_OK;
}

hone_status hn_npz_find(hn_bytes zip, const char *member, uint64_t limit, hn_npz_member *out,
                        hone_error *error) {
  uint64_t first = 0, at, count = 0;
  hone_status status = hn_late_need(HN_LATE_LIBRARY_ZLIB, error);
  if (status == HONE_OK) status = find_directory(zip, &first, &count, error);
  if (status != HONE_OK) return status;
  entry e, best = {0};
  /* 3: the very name; 2: "in:" and the name, of files that hold results, too; 1: the only entry. */
  int rank = 0;
  char names[200] = "";
  at = first;
  for (uint64_t i = 0; i < count; i++) {
    status = next_entry(zip, &at, &e, error);
    if (status != HONE_OK) return status;
    int r = member && strcmp(e.name, member) == 0                                     ? 3
            : member && strncmp(e.name, "in:", 3) == 0 && !strcmp(e.name + 3, member) ? 2
            : count == 1                                                              ? 1
                                                                                      : 0;
    if (r > rank) rank = r, best = e;
    size_t n = strlen(names);
    snprintf(names + n, sizeof names - n, "%s%.40s", n ? ", " : "", e.name);
  }
  if (rank) return locate(zip, &best, limit, out, error);
  hn_fail(error, HONE_ERROR_INPUT, ".npz file has no entry '%s'", member ? member : "");
  hn_error_got(error, "%.150s", count ? names : "no entries at all");
  return HONE_ERROR_INPUT;
}

hone_status hn_npz_entry(hn_bytes zip, const char *member, uint64_t limit, hn_arena *arena, hn_bytes *npy,
                         hone_error *error) {
  hn_npz_member m;
  hone_status status = hn_npz_find(zip, member, limit, &m, error);
  if (status != HONE_OK) return status;
  *npy = m.packed;
  if (m.deflated) {
    uint8_t *out = hn_arena_alloc(arena, m.size + 1);
    if (!out) return hn_fail_memory(error, m.size, "a .npz entry");
    status = inflate_entry(m.packed, out, m.size, error);
    if (status != HONE_OK) return status;
    *npy = (hn_bytes){out, m.size};
  }
  if (crc32_z(0, npy->data, npy->size) != m.crc) return bad(error, "an entry's checksum is wrong");
  return HONE_OK;
}
