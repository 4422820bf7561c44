/* What is in a folder. */
#include "base/os.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool hn_is_folder(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

bool hn_file_stamp(const char *path, uint64_t *size, int64_t *changed_ns) {
  struct stat s;
  if (stat(path, &s) != 0) return false;
  *size = (uint64_t)s.st_size;
  *changed_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
  return true;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

hone_status hn_folder_list(const char *path, char ***names, size_t *n, hone_error *error) {
  size_t room = 0;
  *names = NULL;
  *n = 0;
  DIR *folder = opendir(path);
  if (!folder) {
    hn_fail(error, HONE_ERROR_INPUT, "cannot read the folder: %s", strerror(errno));
    hn_error_where(error, "%s", path);
    return HONE_ERROR_INPUT;
  }
  bool whole = true;
  for (const struct dirent *e; whole && (e = readdir(folder));) {
    if (e->d_name[0] == '.') continue;
    if (*n == room) {
      char **more = hn_realloc(*names, (room = room ? 2 * room : 64) * sizeof *more);
      if (!(whole = more != NULL)) break;
      *names = more;
    }
    whole = ((*names)[*n] = hn_strdup(e->d_name)) != NULL;
    *n += whole;
  }
  closedir(folder);
  if (!whole) {
    for (size_t i = 0; i < *n; i++) hn_free((*names)[i]);
    hn_free(*names);
    *names = NULL;
    *n = 0;
    return hn_fail_memory(error, room * sizeof **names, "the names in a folder");
  }
  if (*n) qsort(*names, *n, sizeof **names, by_bytes);
  return HONE_OK;
}
