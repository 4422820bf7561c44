/* Many pictures of one size in one file: MNIST's (idx) and CIFAR's. */
#include "base/late/late.h"
#include "base/late/zlib.h"
#include "runtime/dataset/set.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MOST ((uint64_t)4 << 30) /* unpacked */

static uint32_t be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool ends(const char *path, const char *with) {
  const size_t n = strlen(path), m = strlen(with);
  return n >= m && strcasecmp(path + n - m, with) == 0;
}

/* CIFAR's record: labels, then three planes of 32x32. */
static uint64_t cifar_labels(const char *path, uint64_t size) {
  enum { PIXELS = 3 * 32 * 32 };
  if (!ends(path, ".bin") || !size) return 0;
  return size % (PIXELS + 1) == 0 ? 1 : size % (PIXELS + 2) == 0 ? 2 : 0;
}

/* The first bytes of what is packed in a .gz, or of the file. */
static size_t first_bytes(const char *path, uint8_t out[16]) {
  uint8_t raw[512];
  const size_t n = hn_file_begin(path, raw, sizeof raw);
  if (n < 18 || raw[0] != 0x1f || raw[1] != 0x8b) {
    memcpy(out, raw, n < 16 ? n : 16);
    return n < 16 ? n : 16;
  }
  if (hn_late_need(HN_LATE_LIBRARY_ZLIB, NULL) != HONE_OK) return 0;
  z_stream z = {.next_in = raw, .avail_in = (uInt)n, .next_out = out, .avail_out = 16};
  if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK) return 0;
  const int r = inflate(&z, Z_SYNC_FLUSH);
  inflateEnd(&z);
  return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 16 - z.avail_out : 0;
}

static bool is_idx(const char *path, int dimensions) {
  uint8_t head[16];
  const size_t n = first_bytes(path, head);
  return n >= 8 && !head[0] && !head[1] && head[2] == 8 && head[3] == dimensions;
}

bool hn_set_is_packed(const char *path) {
  uint64_t size;
  int fd;
  if (is_idx(path, 3)) return true;
  if (!ends(path, ".bin") || hn_file_open(path, NULL, HN_FILE_DATA, &fd, &size, NULL) != HONE_OK)
    return false;
  close(fd);
  return cifar_labels(path, size) != 0;
}

static hone_status gunzip(const hn_file *file, uint8_t **out, uint64_t *size, hone_error *error) {
  hone_status status = hn_late_need(HN_LATE_LIBRARY_ZLIB, error);
  if (status != HONE_OK) return status;
  uint64_t room = file->size < MOST / 4 ? file->size * 4 + 4096 : MOST;
  z_stream z = {.next_in = (Bytef *)file->data};
  uint8_t *data = NULL;
  if (file->size > UINT32_MAX) return hn_fail(error, HONE_ERROR_INPUT, "too large for a .gz of pictures");
  z.avail_in = (uInt)file->size;
  hn_mem_foreign_begin();
  if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK) return hn_fail(error, HONE_ERROR_MEMORY, "cannot start zlib");
  for (int r = Z_OK; status == HONE_OK && r != Z_STREAM_END;) {
    uint8_t *more = hn_realloc(data, room);
    if (!more) {
      status = hn_fail_memory(error, room, "unpacked pictures");
      break;
    }
    data = more;
    z.next_out = data + z.total_out;
    z.avail_out = (uInt)(room - z.total_out > 1u << 30 ? 1u << 30 : room - z.total_out);
    r = inflate(&z, Z_NO_FLUSH);
    if ((r != Z_OK && r != Z_STREAM_END) || (r == Z_OK && z.avail_out && !z.avail_in) || z.total_out >= MOST)
      status = hn_fail(error, HONE_ERROR_INPUT, "damaged or cut off .gz");
    if (z.total_out == room) room *= 2;
  }
  if (status != HONE_OK) hn_mem_foreign_end();
  *size = z.total_out;
  inflateEnd(&z);
  *out = data;
  if (status != HONE_OK) hn_free(data), *out = NULL;
  return status;
}

/* The whole file, unpacked; hn_free(*out). */
static hone_status read_all(const char *path, uint8_t **out, uint64_t *size, hone_error *error) {
  hn_file file = {0};
  *out = NULL;
  hone_status status = hn_file_map(path, NULL, HN_FILE_DATA, &file, error);
  if (status == HONE_OK && file.size >= 18 && file.data[0] == 0x1f && file.data[1] == 0x8b) {
    status = gunzip(&file, out, size, error);
  } else if (status == HONE_OK) {
    *size = file.size;
    *out = hn_malloc(file.size + 1);
    if (*out)
      memcpy(*out, file.data, file.size);
    else
      status = hn_fail_memory(error, file.size, "pictures");
  }
  hn_file_unmap(&file);
  if (status != HONE_OK) hn_error_where(error, "%s", path);
  return status;
}

/* "t10k-labels-idx1-ubyte.gz" of "t10k-images-idx3-ubyte.gz"; NULL: no such name, or no memory. */
static char *labels_beside(hone_dataset *set, const char *path) {
  char *own = hn_arena_strdup(&set->arena, path);
  static const char *const spelt[][2] = {{"images-idx3", "labels-idx1"}, {"images.idx3", "labels.idx1"}};
  for (size_t i = 0; own && i < 2; i++) {
    char *at = strstr(own, spelt[i][0]);
    for (char *next; at && (next = strstr(at + 1, spelt[i][0]));) at = next;
    if (!at) continue;
    memcpy(at, spelt[i][1], strlen(spelt[i][1]));
    if (hn_path_exists(own)) return own;
    const size_t n = strlen(own);
    if (n > 3 && strcmp(own + n - 3, ".gz") == 0) { /* one unpacked, the other not */
      own[n - 3] = 0;
      return own;
    }
    return hn_arena_printf(&set->arena, "%s.gz", own);
  }
  return NULL;
}

static hone_status bad_idx(const char *path, const char *what, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "%s", what);
  hn_error_where(error, "%s", path);
  hn_error_expected(error, "bytes in MNIST's format (idx) as long as their header says");
  return HONE_ERROR_INPUT;
}

static hone_status read_labels(hone_dataset *set, const char *path, const char *labels, uint64_t n,
                               hone_error *error) {
  uint8_t *data = NULL;
  uint64_t size = 0;
  uint32_t most = 0;
  hone_status status = read_all(labels, &data, &size, error);
  if (status != HONE_OK) return status;
  if (size < 8 || be32(data) != 0x0801 || size != 8 + (uint64_t)be32(data + 4))
    status = bad_idx(labels, "these are no labels", error);
  else if (be32(data + 4) != n)
    status = bad_idx(labels, "another number of labels than of pictures", error);
  for (uint64_t i = 0; status == HONE_OK && i < n; i++) {
    if (data[8 + i] > most) most = data[8 + i];
    if (!hn_set_sample_add(set, path, i, data[8 + i])) status = hn_set_memory(error);
  }
  if (status == HONE_OK && !hn_set_classes_upto(set, (uint64_t)most + 1)) status = hn_set_memory(error);
  hn_free(data);
  return status;
}

static hone_status without_labels(hone_dataset *set, const char *path, uint64_t n) {
  set->truth = HONE_TRUTH_NONE;
  for (uint64_t i = 0; i < n; i++)
    if (!hn_set_sample_add(set, path, i, 0)) return hn_set_memory(NULL);
  return HONE_OK;
}

static hone_status read_idx(hone_dataset *set, const char *path, const char *labels, uint64_t size,
                            hone_error *error) {
  hn_packed *p = &set->packed;
  if (size < 16 || be32(p->data) != 0x0803) return bad_idx(path, "these are no pictures", error);
  const uint64_t n = be32(p->data + 4);
  p->first = 16;
  p->height = be32(p->data + 8), p->width = be32(p->data + 12), p->planes = 1;
  if (p->height < 1 || p->width < 1 || p->height > 65535 || p->width > 65535)
    return bad_idx(path, "pictures of an impossible size", error);
  p->pitch = (uint64_t)(p->height * p->width);
  if ((size - 16) / p->pitch != n || (size - 16) % p->pitch)
    return bad_idx(path, "cut off, or too long", error);
  set->kind = p->height == 28 && p->width == 28 ? "MNIST" : "idx";
  set->truth = HONE_TRUTH_CLASS;
  const bool given = labels != NULL;
  if (!given) labels = labels_beside(set, path);
  if (labels && (given || !set->unlabelled || hn_path_exists(labels)))
    return read_labels(set, path, labels, n, error);
  if (set->unlabelled) return without_labels(set, path, n);
  hn_fail(error, HONE_ERROR_INPUT, "the labels of these pictures were not given");
  hn_error_where(error, "%s", path);
  hn_error_hint(error, "--labels FILE, such as t10k-labels-idx1-ubyte");
  return HONE_ERROR_INPUT;
}

static hone_status read_cifar(hone_dataset *set, const char *path, uint64_t size, uint64_t labels,
                              hone_error *error) {
  hn_packed *p = &set->packed;
  *p = (hn_packed){p->data, labels, labels + 3072, 32, 32, 3};
  set->kind = labels == 1 ? "CIFAR-10" : "CIFAR-100";
  set->truth = HONE_TRUTH_CLASS;
  for (uint64_t i = 0; i < size / p->pitch; i++) {
    const uint32_t cls = p->data[i * p->pitch + labels - 1];
    if (!hn_set_sample_add(set, path, i, cls) || !hn_set_classes_upto(set, (uint64_t)cls + 1))
      return hn_set_memory(error);
  }
  return HONE_OK;
}

hone_status hn_set_read_packed(hone_dataset *set, const char *path, const char *labels, hone_error *error) {
  uint64_t size = 0;
  path = hn_arena_strdup(&set->arena, path);
  if (!path) return hn_set_memory(error);
  const hone_status status = read_all(path, &set->packed.data, &size, error);
  if (status != HONE_OK) return status;
  const uint64_t cifar = cifar_labels(path, size);
  return cifar ? read_cifar(set, path, size, cifar, error) : read_idx(set, path, labels, size, error);
}
