/* Arrays that are larger than memory: elements are read as they are asked for. */
#include "base/late/zlib.h"
#include "runtime/data/data.h"

#include <string.h>

enum { HEAD = 66000, PIECE = 1 << 18, AROUND = 1 << 20 };

struct hn_array {
  const char *path; /* the caller's */
  hn_file file;
  hn_npz_member member;
  hone_tensor_desc desc;
  size_t body;  /* of the elements in the unpacked bytes */
  z_stream z;   /* of deflated ones */
  bool open;    /* z is */
  uint64_t at;  /* unpacked so far */
  uint32_t crc; /* of these */
  size_t fed;   /* packed bytes that z was given */
};

static hone_status bad(const hn_array *a, const char *what, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "%s", what);
  hn_error_where(error, "%s", a->path);
  return HONE_ERROR_INPUT;
}

/* Bytes that were read leave memory. The kernel also maps pages in front of the one that is asked for, so
 * that what lies before goes again. */
static void drop(hn_array *a, const uint8_t *from, size_t size) {
  const size_t at = (size_t)(from - a->file.data), before = at < AROUND ? at : AROUND;
  hn_file_drop(&a->file, at - before, size + before);
}

static hone_status restart(hn_array *a, hone_error *error) {
  if (a->open) inflateEnd(&a->z);
  a->z = (z_stream){0};
  a->at = a->fed = a->crc = 0;
  a->open = inflateInit2(&a->z, -MAX_WBITS) == Z_OK;
  return a->open ? HONE_OK : hn_fail_memory(error, 1 << 16, "a packed array");
}

/* The next `size` unpacked bytes. */
static hone_status next(hn_array *a, void *to, size_t size, hone_error *error) {
  const hn_bytes packed = a->member.packed;
  uint8_t *out = to;
  size_t left = size;
  while (left) {
    if (!a->z.avail_in) {
      const size_t read = a->fed < PIECE ? a->fed : PIECE;
      drop(a, packed.data + a->fed - read, read);
      const size_t more = packed.size - a->fed < PIECE ? packed.size - a->fed : PIECE;
      a->z.next_in = (Bytef *)packed.data + a->fed;
      a->z.avail_in = (uInt)more;
      a->fed += more;
    }
    const uInt room = left < 1u << 30 ? (uInt)left : 1u << 30;
    a->z.next_out = out;
    a->z.avail_out = room;
    const int r = inflate(&a->z, Z_NO_FLUSH);
    const size_t got = room - a->z.avail_out;
    if ((r != Z_OK && r != Z_STREAM_END) || (!got && (r == Z_STREAM_END || a->fed == packed.size)))
      return r == Z_MEM_ERROR
                 ? hn_fail_memory(error, 1 << 16, "a packed array")
                 : bad(a, "bad .npz file: an entry does not inflate to its declared size", error);
    a->crc = (uint32_t)crc32_z(a->crc, out, got);
    out += got;
    left -= got;
    a->at += got;
  }
  if (a->at == a->member.size && a->crc != a->member.crc)
    return bad(a, "bad .npz file: an entry's checksum is wrong", error);
  return HONE_OK;
}

static hone_status skip_to(hn_array *a, uint64_t at, hone_error *error) {
  uint8_t waste[4096];
  hone_status status = at < a->at || !a->open ? restart(a, error) : HONE_OK;
  while (status == HONE_OK && a->at < at)
    status = next(a, waste, at - a->at < sizeof waste ? (size_t)(at - a->at) : sizeof waste, error);
  return status;
}

/* Of an entry that lies unpacked in a .npz, before anything of it is believed. */
static hone_status check_sum(hn_array *a, hone_error *error) {
  const hn_bytes all = a->member.packed;
  uint32_t crc = 0;
  for (size_t at = 0; at < all.size; at += PIECE) {
    const size_t size = all.size - at < PIECE ? all.size - at : PIECE;
    crc = (uint32_t)crc32_z(crc, all.data + at, size);
    drop(a, all.data + at, size);
  }
  return crc == a->member.crc ? HONE_OK : bad(a, "bad .npz file: an entry's checksum is wrong", error);
}

/* The beginning of the unpacked bytes says what they are. */
static hone_status read_head(hn_array *a, bool *plain, hone_error *error) {
  hn_bytes head = {a->member.packed.data, a->member.size};
  uint8_t *room = NULL;
  hone_status status = HONE_OK;
  if (a->member.deflated) {
    head.size = a->member.size < HEAD ? a->member.size : HEAD;
    head.data = room = hn_malloc(head.size + 1);
    if (!room) return hn_fail_memory(error, head.size, "a packed array");
    status = skip_to(a, 0, error);
    if (status == HONE_OK) status = next(a, room, head.size, error);
  }
  if (status == HONE_OK) status = hn_npy_head(head, &a->desc, &a->body, plain, error);
  hn_free(room);
  if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", a->path);
  if (status == HONE_OK && (uint64_t)hone_desc_bytes(&a->desc) > a->member.size - a->body)
    status = bad(a, ".npy file is cut off", error);
  return status;
}

hone_status hn_array_open(const char *path, const char *member, hn_array **out, hone_error *error) {
  *out = NULL;
  hn_array *a = hn_calloc(1, sizeof *a);
  if (!a) return hn_fail_memory(error, sizeof *a, "an array");
  a->path = path;
  hone_status status = hn_file_map(path, NULL, HN_FILE_DATA, &a->file, error);
  const hn_bytes file = {a->file.data, a->file.size};
  bool plain = false;
  if (status == HONE_OK && file.size >= 6 && memcmp(file.data, "\x93NUMPY", 6) == 0) {
    a->member = (hn_npz_member){.packed = file, .size = file.size};
    status = read_head(a, &plain, error);
  } else if (status == HONE_OK && file.size >= 4 &&
             (memcmp(file.data, "PK\3\4", 4) == 0 || memcmp(file.data, "PK\5\6", 4) == 0)) {
    status = hn_npz_find(file, member, UINT64_MAX, &a->member, error);
    if (status != HONE_OK) hn_error_where(error, "%s", path);
    if (status == HONE_OK && !a->member.deflated) status = check_sum(a, error);
    if (status == HONE_OK) status = read_head(a, &plain, error);
  }
  if (status == HONE_OK && plain)
    *out = a;
  else
    hn_array_close(a);
  return status;
}

const hone_tensor_desc *hn_array_desc(const hn_array *a) { return &a->desc; }

hone_status hn_array_read(hn_array *a, uint64_t at, void *to, size_t size, hone_error *error) {
  const uint64_t from = at + a->body;
  if (from > a->member.size || a->member.size - from < size) return bad(a, "the array ends earlier", error);
  if (a->member.deflated) {
    hone_status status = skip_to(a, from, error);
    return status == HONE_OK ? next(a, to, size, error) : status;
  }
  const uint8_t *p = a->member.packed.data + from;
  memcpy(to, p, size);
  drop(a, p, size);
  return HONE_OK;
}

void hn_array_close(hn_array *a) {
  if (!a) return;
  if (a->open) inflateEnd(&a->z);
  hn_file_unmap(&a->file);
  hn_free(a);
}
