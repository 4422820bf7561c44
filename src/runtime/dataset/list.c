/* Labels as a text: "PATH CLASS" a line. The class stands behind the last tab, else comma, else blank. */
#include "runtime/dataset/set.h"

#include <string.h>

/* Cuts the line in two; false: there is no class in it. */
static bool cut(char *line, const char **path, const char **cls) {
  char *at = strrchr(line, '\t');
  if (!at) at = strrchr(line, ',');
  if (!at) at = strrchr(line, ' ');
  if (!at || at == line) return false;
  *cls = at + 1 + strspn(at + 1, " \t");
  while (at > line && strchr(" \t,", at[-1])) at--;
  *at = 0;
  *path = line;
  return at > line && **cls;
}

/* Relative to the folder, and where nothing is there, as it stands. */
static const char *place(hone_dataset *set, const char *folder, const char *path) {
  if (path[0] == '/') return path;
  const char *below = hn_set_join(set, folder, path);
  return !below || hn_path_exists(below) || !hn_path_exists(path) ? below : path;
}

hone_status hn_set_is_list(const char *labels, const char *folder, bool *is, hone_error *error) {
  hone_dataset scratch = {0};
  hn_file file = {0};
  const char *path, *cls;
  *is = false;
  hone_status status = hn_file_map(labels, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", labels);
    return status;
  }
  hn_lines lines = {(const char *)file.data, (const char *)file.data + file.size, 0};
  char *line = hn_lines_next(&lines, &scratch.arena, &status);
  if (line && cut(line, &path, &cls)) {
    path = place(&scratch, folder, path);
    *is = path && hn_path_exists(path);
  }
  hn_arena_free(&scratch.arena);
  hn_file_unmap(&file);
  return status == HONE_OK ? status : hn_set_memory(error);
}

static bool add_line(hone_dataset *set, const char *labels, const char *folder, uint64_t at, char *line,
                     hone_status *status) {
  const char *path, *cls_name;
  uint32_t cls;
  if (!cut(line, &path, &cls_name))
    return hn_set_leave(set, "%s:%llu: wants PATH CLASS", labels, (unsigned long long)at);
  path = place(set, folder, path);
  if (!path) return false;
  if (!hn_set_class(set, cls_name, &cls, status))
    return *status == HONE_OK &&
           hn_set_leave(set, "%s:%llu: no class '%s'", labels, (unsigned long long)at, cls_name);
  return hn_set_sample_add(set, path, 0, cls);
}

hone_status hn_set_read_list(hone_dataset *set, const char *labels, const char *folder, hone_error *error) {
  hn_file file = {0};
  hone_status status = hn_file_map(labels, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", labels);
    return status;
  }
  hn_lines lines = {(const char *)file.data, (const char *)file.data + file.size, 0};
  for (char *line; status == HONE_OK && (line = hn_lines_next(&lines, &set->arena, &status));)
    if (!add_line(set, labels, folder, lines.number, line, &status)) status = HONE_ERROR_MEMORY;
  hn_file_unmap(&file);
  set->kind = "list of labels";
  set->truth = HONE_TRUTH_CLASS;
  return status == HONE_OK ? status : hn_set_memory(error);
}
