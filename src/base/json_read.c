#include "base/json_read.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What jansson (2.14) allocates, with malloc's own words. Buckets of an object and places of an array double,
 * and the old ones are there until the new ones are: three times what the members need. */
enum {
  OBJECT = 320, /* with its first eight buckets */
  ARRAY = 160,  /* with its first eight places */
  MEMBER = 144, /* of an object, without its key's bytes */
  ELEMENT = 24, /* of an array */
  STRING = 80,  /* without its bytes */
  NUMBER = 48,
  LEAST = 64 << 10,
  DEEPEST = 2048 /* jansson goes no deeper */
};

/* Bytes of the string that begins behind the quote at `at`. */
static size_t string_length(const char *text, size_t length, size_t at) {
  size_t end = at;
  while (end < length && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return (end < length ? end : length) - at;
}

static size_t number_length(const char *text, size_t length, size_t at) {
  size_t end = at;
  while (end < length && text[end] && strchr("0123456789+-.eE", text[end])) end++;
  return end - at;
}

size_t hn_json_need(const char *text, size_t length) {
  bool object[DEEPEST] = {0};
  size_t need = LEAST, depth = 0, longest = 0;
  for (size_t i = 0; text && i < length; i++) {
    const char c = text[i];
    size_t token = 0;
    if (c == '{' || c == '[') {
      if (depth == DEEPEST) break;
      object[depth++] = c == '{';
      need += c == '{' ? OBJECT : ARRAY;
    } else if (c == '}' || c == ']') {
      if (!depth--) break; /* an error: nothing behind it is read */
    } else if (c == ',') {
      if (depth && !object[depth - 1]) need += ELEMENT;
    } else if (c == ':') {
      need += MEMBER;
    } else if (c == '"') {
      token = string_length(text, length, i + 1);
      need += STRING + token;
      i += token + 1;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      token = number_length(text, length, i);
      need += NUMBER;
      i += token - 1;
    }
    if (token > longest) longest = token;
  }
  return need +
         4 * longest; /* the buffer of the token that is read doubles, and its text is copied out of it */
}

/* jansson loses characters, or aborts, when the buffer of a token cannot grow. So there is a look first
 * whether what the text takes at most is to be had; it costs no memory. */
json_t *hn_json_load(const char *text, size_t length, size_t flags, json_error_t *where) {
  memset(where, 0, sizeof *where);
  void *room = length < SIZE_MAX / (2 * OBJECT) ? hn_malloc(hn_json_need(text, length)) : NULL;
  if (!room) return NULL;
  hn_free(room);
  hn_mem_foreign_begin();
  json_t *root = json_loadb(text, length, flags, where);
  hn_mem_foreign_end();
  return root;
}

/* ---- places */

static size_t past_space(const char *text, size_t length, size_t at) {
  while (at < length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) at++;
  return at;
}

/* Behind the value that begins there, without a look into what is in it. */
static size_t past_value(const char *text, size_t length, size_t at) {
  size_t depth = 0;
  do {
    at = past_space(text, length, at);
    if (at >= length) return length;
    const char c = text[at];
    if (c == '"') {
      at += string_length(text, length, at + 1) + 2;
    } else if (c == '{' || c == '[') {
      depth++, at++;
    } else if (c == '}' || c == ']') {
      depth -= depth > 0, at++;
    } else if (c == ',' || c == ':') {
      at++;
    } else {
      while (at < length && !strchr(" \t\r\n,:]}", text[at])) at++;
    }
  } while (depth && at < length);
  return at < length ? at : length;
}

size_t hn_json_root(const char *text, size_t length) { return past_space(text, length, 0); }

size_t hn_json_step(const char *text, size_t length, size_t at, const char *step, size_t n, size_t *value) {
  const bool object = at < length && text[at] == '{';
  if (!object && (at >= length || text[at] != '[')) return length;
  at++;
  for (size_t index = 0;; index++) {
    at = past_space(text, length, at);
    if (at >= length || text[at] == '}' || text[at] == ']') return length;
    const size_t here = at;
    bool found = false;
    if (object) {
      const size_t key = string_length(text, length, at + 1);
      found = step && key == n && at + 1 + n <= length && memcmp(text + at + 1, step, n) == 0;
      at = past_space(text, length, at + key + 2);
      at = past_space(text, length, at + 1); /* the colon */
    } else if (step) {
      char number[24];
      const int digits = snprintf(number, sizeof number, "%zu", index);
      found = (size_t)digits == n && memcmp(number, step, n) == 0;
    }
    if (step ? found : index == n) {
      *value = at;
      return here;
    }
    at = past_space(text, length, past_value(text, length, at));
    if (at < length && text[at] == ',') at++;
  }
}

void hn_json_line_of(const char *text, size_t length, size_t at, int *line, int *column) {
  *line = *column = 1;
  for (size_t i = 0; i < at && i < length; i++) {
    *column = text[i] == '\n' ? 1 : *column + 1;
    *line += text[i] == '\n';
  }
}

void hn_json_place(const char *text, size_t length, const char *path, int *line, int *column) {
  size_t at = hn_json_root(text, length), place = at;
  while (*path) {
    const size_t n = strcspn(path, "/");
    const size_t found = hn_json_step(text, length, at, path, n, &at);
    if (found >= length) break;
    place = found;
    path += n + (path[n] == '/');
  }
  hn_json_line_of(text, length, place, line, column);
}
