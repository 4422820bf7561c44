#include "cli/options/items.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { LIST_MOST = 1 << 30 };

static hone_status fail(hone_error *error, hone_status status, const char *path, const char *what) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  snprintf(error->where, sizeof error->where, "%.250s", path);
  return status;
}

static hone_status fail_to_open(hone_error *error, const char *path) {
  const int e = errno;
  fail(error, HONE_ERROR_INPUT, path, "");
  snprintf(error->what, sizeof error->what, "cannot open: %s", strerror(e));
  snprintf(error->hint, sizeof error->hint, "check the path");
  return HONE_ERROR_INPUT;
}

static bool known_ending(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".png", ".npy", ".npz", ".pb"};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
    if (strcasecmp(dot, endings[i]) == 0) return true;
  return false;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* folder/name, of whose bytes the first `length` count; NULL: no memory. */
static char *join_part(const char *folder, const char *name, size_t length) {
  const size_t n = strlen(folder), all = n + length + 2;
  char *path = malloc(all);
  if (path) snprintf(path, all, "%s%s%.*s", folder, n && folder[n - 1] != '/' ? "/" : "", (int)length, name);
  return path;
}

static char *join(const char *folder, const char *name) { return join_part(folder, name, strlen(name)); }

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
  if (!dir) return fail_to_open(error, folder);
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
  if (stat(source, &s) != 0) return fail_to_open(error, source);
  if (S_ISDIR(s.st_mode)) return open_folder(items, source, error);
  if (is_item(source)) return add(items, strdup(source), error);
  const char *slash = strrchr(source, '/');
  const hone_status status = hone_file_read(source, LIST_MOST, &items->text, &items->size, error);
  if (status != HONE_OK) return status;
  items->folder = strndup(source, slash ? (size_t)(slash - source) + 1 : 0);
  return items->folder ? HONE_OK : fail(error, HONE_ERROR_MEMORY, source, "out of memory");
}

/* The next line of the list, without its end; NULL: there is none. */
static const char *next_line(cli_items *items) {
  if (items->list) {
    const ssize_t n = getline(&items->line, &items->room, items->list);
    return n < 0 ? NULL : items->line;
  }
  if (items->at >= items->size) return NULL;
  char *line = items->text + items->at, *end = memchr(line, '\n', items->size - items->at);
  if (end) *end = 0;
  items->at = end ? (size_t)(end - items->text) + 1 : items->size;
  return line;
}

const char *cli_items_next(cli_items *items) {
  if (items->path) return items->at < items->n ? items->path[items->at++] : NULL;
  for (const char *line; (line = next_line(items));) {
    const size_t n = strcspn(line, "\r\n");
    if (!n) continue;
    free(items->joined);
    return items->joined = join_part(line[0] == '/' || !items->folder ? "" : items->folder, line, n);
  }
  return NULL;
}

void cli_items_close(cli_items *items) {
  for (size_t i = 0; i < items->n; i++) free(items->path[i]);
  hone_file_free(items->text);
  free(items->path);
  free(items->folder);
  free(items->line);
  free(items->joined);
  *items = (cli_items){0};
}
