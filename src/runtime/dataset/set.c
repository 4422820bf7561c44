/* What readers of data sets share: samples, classes, lines. */
#include "runtime/dataset/set.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool hn_set_sample_add(hone_dataset *set, const char *path, uint64_t index, uint32_t cls) {
  return path && hn_vec_push(&set->samples, (hn_set_sample){path, index, cls, (uint32_t)set->boxes.len, 0});
}

bool hn_set_leave(hone_dataset *set, const char *format, ...) {
  hn_str text = {0};
  va_list ap;
  va_start(ap, format);
  hn_text_vformat(&text, format, ap);
  va_end(ap);
  char *line = text.failed ? NULL : hn_arena_strdup(&set->arena, text.ptr);
  hn_str_free(&text);
  return line && hn_vec_push(&set->problems, line);
}

hone_status hn_set_memory(hone_error *error) { return hn_fail_memory(error, 0, "a data set"); }

bool hn_set_class_append(hone_dataset *set, const char *name) {
  char *own = hn_arena_strdup(&set->arena, name);
  if (!own || !hn_vec_push(&set->classes, own)) return false;
  return hn_map_has(&set->numbers, own) ||
         hn_map_set(&set->numbers, own, (void *)(uintptr_t)set->classes.len);
}

bool hn_set_class_add(hone_dataset *set, const char *name) {
  return hn_map_has(&set->numbers, name) || hn_set_class_append(set, name);
}

bool hn_set_number(const char *text, uint32_t *out) {
  uint64_t v = 0;
  if (!*text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || v > 200000000) return false;
    v = v * 10 + (uint64_t)(*text - '0');
  }
  *out = (uint32_t)v;
  return true;
}

bool hn_set_class(hone_dataset *set, const char *name, uint32_t *cls, hone_status *status) {
  const uintptr_t known = (uintptr_t)hn_map_get(&set->numbers, name);
  *status = HONE_OK;
  if (known) {
    *cls = (uint32_t)(known - 1);
    return true;
  }
  if (hn_set_number(name, cls)) {
    if (*cls < set->classes.len) return true;
    if (set->named || *cls > 1000000) return false;
    if (!hn_set_classes_upto(set, (uint64_t)*cls + 1)) *status = HONE_ERROR_MEMORY;
    return *status == HONE_OK;
  }
  if (set->named) return false;
  *cls = (uint32_t)set->classes.len;
  if (!hn_set_class_append(set, name)) *status = HONE_ERROR_MEMORY;
  return *status == HONE_OK;
}

bool hn_set_classes_upto(hone_dataset *set, uint64_t n) {
  while (set->classes.len < n) {
    char name[24];
    snprintf(name, sizeof name, "%zu", set->classes.len);
    if (!hn_set_class_append(set, name)) return false;
  }
  return true;
}

char *hn_lines_next(hn_lines *l, hn_arena *arena, hone_status *status) {
  while (l->at < l->end) {
    const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at)), *from = l->at;
    if (!stop) stop = l->end;
    l->at = stop + (stop < l->end);
    l->number++;
    while (from < stop && strchr(" \t\r", *from) && *from) from++;
    while (stop > from && strchr(" \t\r", stop[-1]) && stop[-1]) stop--;
    if (from == stop) continue;
    char *line = hn_arena_strndup(arena, from, (size_t)(stop - from));
    if (!line) *status = HONE_ERROR_MEMORY;
    return line;
  }
  return NULL;
}

/* "n01440764 tench, Tinca tinca": the folder may be called by the first word. */
static bool alias(hone_dataset *set, const char *line) {
  const size_t n = strcspn(line, " \t,");
  if (!line[n] || !n) return true;
  char *word = hn_arena_strndup(&set->arena, line, n);
  if (!word) return false;
  return hn_map_has(&set->numbers, word) ||
         hn_map_set(&set->numbers, word, (void *)(uintptr_t)set->classes.len);
}

hone_status hn_set_names(hone_dataset *set, const char *path, hone_error *error) {
  hn_file file = {0};
  hone_status status = hn_file_map(path, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", path);
    return status;
  }
  hn_lines lines = {(const char *)file.data, (const char *)file.data + file.size, 0};
  hn_arena arena = {0};
  for (char *line; status == HONE_OK && (line = hn_lines_next(&lines, &arena, &status));)
    if (!hn_set_class_append(set, line) || !alias(set, line)) status = HONE_ERROR_MEMORY;
  hn_arena_free(&arena);
  hn_file_unmap(&file);
  if (status != HONE_OK) return hn_set_memory(error);
  set->named = true;
  if (set->classes.len) return HONE_OK;
  status = hn_fail(error, HONE_ERROR_INPUT, "no names of classes in it");
  hn_error_where(error, "%s", path);
  return status;
}

bool hn_set_is_input(const char *name) {
  static const char *const known[] = {".jpg", ".jpeg", ".png", ".npy", ".npz", ".pb"};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
    if (strcasecmp(dot, known[i]) == 0) return true;
  return false;
}

char *hn_set_join(hone_dataset *set, const char *folder, const char *name) {
  const size_t n = strlen(folder);
  return hn_arena_printf(&set->arena, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
}
