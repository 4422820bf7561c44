/* What is in a folder. */
#include "base/os.h"

#include "base/error.h"
#include "base/vec.h"

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

static hone_status refused(const char *path, int e, hone_error *error) {
  if (e == ENOMEM) return hn_fail_memory(error, 0, "the names in a folder");
  const bool theirs = e == ENOENT || e == ENOTDIR || e == EACCES || e == ELOOP || e == ENAMETOOLONG;
  hn_fail(error, theirs ? HONE_ERROR_INPUT : HONE_ERROR_IO, "cannot read the folder: %s", strerror(e));
  hn_error_where(error, "%s", path);
  return theirs ? HONE_ERROR_INPUT : HONE_ERROR_IO;
}

hone_status hn_folder_list(const char *path, char ***names, size_t *n, hone_error *error) {
  HN_VEC(char *) v = {0};
  hone_status status = HONE_OK;
  DIR *folder = opendir(path);
  if (!folder) status = refused(path, errno, error);
  while (status == HONE_OK) {
    errno = 0;
    const struct dirent *e = readdir(folder);
    if (!e && errno) status = refused(path, errno, error);
    if (!e) break;
    if (e->d_name[0] == '.') continue;
    char *name = hn_strdup(e->d_name);
    if (name && hn_vec_push(&v, name)) continue;
    hn_free(name);
    status = refused(path, ENOMEM, error);
  }
  if (folder) closedir(folder);
  for (size_t i = 0; status != HONE_OK && i < v.len; i++) hn_free(v.ptr[i]);
  if (status != HONE_OK) hn_vec_free(&v);
  if (v.len) qsort(v.ptr, v.len, sizeof *v.ptr, by_bytes);
  *names = v.ptr;
  *n = v.len;
  return status;
}
