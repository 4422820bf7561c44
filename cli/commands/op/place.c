#include "cli/commands/op/place.h"

#include <stdlib.h>
#include <string.h>

static const char *blank(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *skip_string(const char *p) {
  for (p++; *p && *p != '"'; p++)
    if (*p == '\\' && p[1]) p++;
  return *p ? p + 1 : p;
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p) {
  int depth = 0;
  for (p = blank(p); *p;) {
    if (*p == '"') {
      p = skip_string(p);
    } else {
      if (*p == '[' || *p == '{') depth++;
      if (*p == ']' || *p == '}') depth--;
      if (depth < 0 || (!depth && *p == ',')) return p;
      p++;
      if (!depth && (p[-1] == ']' || p[-1] == '}')) return p;
      continue;
    }
    if (!depth) return p;
  }
  return p;
}

/* The value behind a key of the object at p, or NULL. */
static const char *member(const char *p, const char *key, size_t n) {
  if (*p != '{') return NULL;
  for (p = blank(p + 1); *p == '"';) {
    const char *name = p + 1, *end = skip_string(p);
    const bool found = (size_t)(end - 1 - name) == n && memcmp(name, key, n) == 0;
    p = blank(end);
    if (*p != ':') return NULL;
    p = blank(p + 1);
    if (found) return p;
    p = blank(skip_value(p));
    if (*p == ',') p = blank(p + 1);
  }
  return NULL;
}

static const char *element(const char *p, long index) {
  if (*p != '[') return NULL;
  p = blank(p + 1);
  for (; index > 0 && *p && *p != ']'; index--) {
    p = blank(skip_value(p));
    if (*p == ',') p = blank(p + 1);
  }
  return *p && *p != ']' ? p : NULL;
}

static const char *find(const char *text, const char *path, bool *found) {
  const char *at = blank(text);
  *found = true;
  while (*path && *found) {
    const char *next;
    if (*path == '[') {
      char *end;
      next = element(at, strtol(path + 1, &end, 10));
      path = *end ? end + 1 : end;
    } else {
      if (*path == '.') path++;
      const size_t n = strcspn(path, ".[");
      next = member(at, path, n);
      path += n;
    }
    *found = next != NULL;
    if (next) at = next;
  }
  return at;
}

static void count(const char *text, const char *at, int *line, int *column) {
  *line = 1, *column = 1;
  for (const char *p = text; p < at; p++) {
    ++*column;
    if (*p == '\n') ++*line, *column = 1;
  }
}

bool op_place(const char *text, const char *path, int *line, int *column) {
  bool found;
  count(text, find(text, path, &found), line, column);
  return found;
}

bool op_place_within(const char *text, const char *path, size_t index, int *line, int *column) {
  bool found;
  const char *at = find(text, path, &found);
  if (found && *at == '"')
    for (at++; index > 0 && *at && *at != '"'; index--) {
      const size_t n = *at != '\\' ? 1 : at[1] == 'u' ? 6 : 2;
      for (size_t i = 0; i < n && *at; i++) at++;
    }
  count(text, at, line, column);
  return found;
}
