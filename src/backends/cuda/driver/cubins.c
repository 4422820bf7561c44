#include "backends/cuda/driver/cubins.h"

#include "backends/cuda/driver/context.h"
#include "base/checksum.h"
#include "base/os.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct header {
  char magic[8];
  uint64_t key[2], size, sum; /* sum: of what follows */
} header;

static const char magic[8] = "honecub1";

/* Two sums with different multipliers, 128 bits together. */
void hn_cubin_hash(uint64_t key[2], const char *text) {
  uint64_t a = key[0] ^ 0xcbf29ce484222325u, b = key[1] + 0x9e3779b97f4a7c15u;
  size_t n = 0;
  for (; text[n]; n++) {
    const uint64_t c = (unsigned char)text[n];
    a = (a ^ c) * 0x100000001b3u;
    b = (b + c + 1) * 0xff51afd7ed558ccdu;
    b ^= b >> 32;
  }
  key[0] = (a ^ n) * 0x100000001b3u;
  key[1] = (b ^ n) * 0xc4ceb9fe1a85ec53u;
}

static void path_of(char path[1200], const char *folder, const uint64_t key[2]) {
  snprintf(path, 1200, "%s/%016llx%016llx.cubin", folder, (unsigned long long)key[0],
           (unsigned long long)key[1]);
}

bool hn_cubin_read(hn_device *d, const char *folder, const uint64_t key[2], void **out, size_t *size) {
  char path[1200];
  hn_file f;
  header h;
  if (!*folder) return false;
  path_of(path, folder, key);
  if (!hn_path_exists(path) || hn_file_map(path, NULL, HN_FILE_CACHE, &f, NULL) != HONE_OK) return false;
  bool good = f.size > sizeof h;
  if (good) memcpy(&h, f.data, sizeof h);
  good = good && memcmp(h.magic, magic, sizeof magic) == 0 && h.key[0] == key[0] && h.key[1] == key[1] &&
         h.size == f.size - sizeof h && h.sum == hn_checksum(f.data + sizeof h, h.size);
  if (!good) {
    hn_cuda_warn(d, "kernel cache: %s is damaged: compiled again", path);
  } else if ((*out = hn_malloc(h.size))) {
    memcpy(*out, f.data + sizeof h, h.size);
    *size = h.size;
  } else {
    good = false;
  }
  hn_file_unmap(&f);
  return good;
}

void hn_cubin_write(hn_device *d, const char *folder, const uint64_t key[2], const void *cubin, size_t size) {
  char path[1200];
  hone_error why = {0};
  if (!*folder || d->keeps_nothing) return;
  header h = {.key = {key[0], key[1]}, .size = size, .sum = hn_checksum(cubin, size)};
  memcpy(h.magic, magic, sizeof magic);
  path_of(path, folder, key);
  hn_writer w;
  hone_status status = hn_mkdirs(folder, &why);
  if (status == HONE_OK) status = hn_writer_open(path, &w, &why);
  if (status == HONE_OK) {
    status = hn_writer_write(&w, &h, sizeof h, &why);
    if (status == HONE_OK) status = hn_writer_write(&w, cubin, size, &why);
    if (status == HONE_OK)
      status = hn_writer_commit(&w, &why);
    else
      hn_writer_abandon(&w);
  }
  if (status != HONE_OK && !atomic_exchange(&d->keeps_nothing, true))
    hn_cuda_warn(
        d, "kernel cache: %s cannot be written (%.150s): HONE_KERNEL_CACHE names another folder, or off",
        folder, why.what);
}
