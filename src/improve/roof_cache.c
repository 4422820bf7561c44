#include "improve/roof_cache.h"

#include "base/map.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool place_of(const char *key, char *folder, char *path, size_t size) {
  if (!hn_cache_dir(folder, size)) return false;
  const int n =
      snprintf(path, size, "%s/roofs-%016llx.txt", folder, (unsigned long long)hn_hash(key, strlen(key), 0));
  return n > 0 && (size_t)n < size;
}

bool hn_roof_cache_read(const char *key, hn_str *lines) {
  char folder[4096], path[4096];
  hn_file file;
  if (!place_of(key, folder, path, sizeof path) ||
      hn_file_map(path, NULL, HN_FILE_CACHE, &file, NULL) != HONE_OK)
    return false;
  const size_t len = strlen(key);
  const bool ours = file.size > len && memcmp(file.data, key, len) == 0 && file.data[len] == '\n' &&
                    !memchr(file.data, 0, file.size);
  if (ours) hn_str_append(lines, (const char *)file.data + len + 1, file.size - len - 1);
  hn_file_unmap(&file);
  return ours && lines->ptr && !lines->failed;
}

void hn_roof_cache_write(const char *key, const hn_str *lines) {
  char folder[4096], path[4096];
  if (!place_of(key, folder, path, sizeof path) || hn_mkdirs(folder, NULL) != HONE_OK) return;
  hn_str s = {0};
  hn_str_printf(&s, "%s\n%s", key, lines->ptr ? lines->ptr : "");
  if (!s.failed && !lines->failed) hn_file_write(path, s.ptr, s.len, NULL);
  hn_str_free(&s);
}

bool hn_roof_cache_number(const hn_str *lines, const char *name, double *value) {
  const size_t n = strlen(name);
  for (const char *line = lines->ptr; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
    char *end;
    if (strncmp(line, name, n) != 0 || line[n] != ' ') continue;
    *value = strtod(line + n + 1, &end);
    return end > line + n + 1 && *end == '\n';
  }
  return false;
}
