#include "cli/options/items.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static hone_status fail(hone_error *error, hone_status status, const char *path, const char *what) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  snprintf(error->where, sizeof error->where, "%.250s", path);
  return status;
}

static bool known_ending(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".png", ".npy", ".npz", ".pb"};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
    if (strcasecmp(dot, endings[i]) == 0) return true;
  return false;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* folder/name; NULL: no memory. */
static char *join(const char *folder, const char *name) {
  const size_t n = strlen(folder), all = n + strlen(name) + 2;
  char *path = malloc(all);
  if (path) snprintf(path, all, "%s%s%s", folder, n && folder[n - 1] != '/' ? "/" : "", name);
  return path;
}

static hone_status add(cli_items *items, char *path, hone_error *error) {
  char **more = path ? realloc(items->path, (items->n + 1) * sizeof *more) : NULL;
  if (!more) {
    free(path);
    return fail(error, HONE_ERROR_MEMORY, "", "out of memory for names of files");
  }
  items->path = more;
  items->path[items->n++] = path;
  return HONE_OK;
}

static hone_status open_folder(cli_items *items, const char *folder, hone_error *error) {
  DIR *dir = opendir(folder);
  if (!dir) return fail(error, HONE_ERROR_INPUT, folder, strerror(errno));
  hone_status status = HONE_OK;
  for (struct dirent *e; status == HONE_OK && (e = readdir(dir));) {
    struct stat s;
    if (e->d_name[0] == '.' || !known_ending(e->d_name)) continue;
    char *path = join(folder, e->d_name);
    if (path && (stat(path, &s) != 0 || !S_ISREG(s.st_mode)))
      free(path);
    else
      status = add(items, path, error);
  }
  closedir(dir);
  if (status == HONE_OK && !items->n) {
    status = fail(error, HONE_ERROR_INPUT, folder, "the folder holds no pictures and no arrays");
    snprintf(error->expected, sizeof error->expected, ".jpg, .png, .npy, .npz or .pb");
  }
  if (items->n) qsort(items->path, items->n, sizeof *items->path, by_name);
  return status;
}

/* By its first bytes, or .pb. */
static bool is_item(const char *path) {
  unsigned char b[8];
  const size_t n = hone_file_begin(path, b, sizeof b);
  const char *dot = strrchr(path, '.');
  return (n >= 3 && memcmp(b, "\xff\xd8\xff", 3) == 0) ||
         (n >= 8 && memcmp(b, "\x89PNG\r\n\x1a\n", 8) == 0) || (n >= 6 && memcmp(b, "\x93NUMPY", 6) == 0) ||
         (n >= 4 && memcmp(b, "PK\3\4", 4) == 0) || (dot && strcasecmp(dot, ".pb") == 0);
}

hone_status cli_items_open(cli_items *items, const char *source, hone_error *error) {
  struct stat s;
  *items = (cli_items){0};
  if (strcmp(source, "-") == 0) {
    items->list = stdin;
    return HONE_OK;
  }
  if (stat(source, &s) != 0) return fail(error, HONE_ERROR_INPUT, source, strerror(errno));
  if (S_ISDIR(s.st_mode)) return open_folder(items, source, error);
  if (is_item(source)) return add(items, strdup(source), error);
  const char *slash = strrchr(source, '/');
  items->list = fopen(source, "re");
  if (!items->list) return fail(error, HONE_ERROR_INPUT, source, strerror(errno));
  items->folder = strndup(source, slash ? (size_t)(slash - source) + 1 : 0);
  return items->folder ? HONE_OK : fail(error, HONE_ERROR_MEMORY, source, "out of memory");
}

const char *cli_items_next(cli_items *items) {
  if (!items->list) return items->at < items->n ? items->path[items->at++] : NULL;
  for (ssize_t n; (n = getline(&items->line, &items->room, items->list)) >= 0;) {
    while (n && (items->line[n - 1] == '\n' || items->line[n - 1] == '\r')) items->line[--n] = 0;
    if (!n) continue;
    if (items->line[0] == '/' || !items->folder || !*items->folder) return items->line;
    free(items->joined);
    return items->joined = join(items->folder, items->line);
  }
  return NULL;
}

void cli_items_close(cli_items *items) {
  for (size_t i = 0; i < items->n; i++) free(items->path[i]);
  if (items->list && items->list != stdin) fclose(items->list);
  free(items->path);
  free(items->folder);
  free(items->line);
  free(items->joined);
  *items = (cli_items){0};
}
