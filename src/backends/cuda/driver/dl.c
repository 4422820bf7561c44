#include "backends/cuda/driver/dl.h"

#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH = 1024 };

static void *open_as(const char *folder, const char *name, char *path) {
  const int n = snprintf(path, PATH, "%s%s%s", folder, *folder ? "/" : "", name);
  if (n < 0 || n >= PATH || (*folder && !hn_path_exists(path))) return NULL;
  return hn_library_open(path, NULL);
}

/* Beside hone before the system's: a folder that was copied to this machine brings what it was tested with.
 */
static void *find(const hn_dl_library *l, char *path) {
  char own[PATH] = "", toolkit[PATH] = "";
  void *lib = NULL;
  const char *root = getenv("CUDA_PATH");
  if (root) snprintf(toolkit, sizeof toolkit, "%s/lib64", root);
  const bool has_own = hn_own_folder(own, sizeof own);
  for (const char *const *n = l->names; !lib && has_own && *n; n++) lib = open_as(own, *n, path);
  for (const char *const *n = l->names; !lib && *n; n++) lib = open_as("", *n, path);
  const char *const folders[] = {toolkit, "/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
  for (size_t i = 0; l->toolkit && i < sizeof folders / sizeof *folders; i++)
    for (const char *const *n = l->names; !lib && folders[i][0] && *n; n++)
      lib = open_as(folders[i], *n, path);
  return lib;
}

hone_status hn_dl_load(const hn_dl_library *l, const hn_dl_symbol *symbols, size_t n, void *table, char *path,
                       size_t size, hone_error *error) {
  const char *given = getenv(l->env);
  char found[PATH] = "";
  hone_error why = {0};
  void *lib = NULL;
  if (given && *given) {
    snprintf(found, sizeof found, "%s", given);
    lib = hn_library_open(given, &why);
  } else {
    lib = find(l, found);
  }
  if (!lib) {
    if (given && *given)
      hn_fail(error, HONE_ERROR_MISSING, "%s: %s=%.100s: %.150s", l->title, l->env, given, why.what);
    else
      hn_fail(error, HONE_ERROR_MISSING, "%s is not on this machine: no %s", l->title, l->names[0]);
    hn_error_hint(error, "%s", l->without);
    return HONE_ERROR_MISSING;
  }
  const char *lacks = hn_dl_fill(lib, symbols, n, table);
  if (lacks) {
    hn_fail(error, HONE_ERROR_MISSING, "%s is too old: %.150s has no %s", l->title, found, lacks);
    hn_error_hint(error, "%s", l->without);
    hn_library_close(lib);
    return HONE_ERROR_MISSING;
  }
  if (path) snprintf(path, size, "%s", found);
  return HONE_OK;
}
