#include "api/chain/place.h"

#include <stdbool.h>
#include <string.h>

typedef struct cursor {
  const char *text;
  size_t length, at;
} cursor;

static bool more(const cursor *c) { return c->at < c->length; }

static void blanks(cursor *c) {
  while (more(c) && strchr(" \t\r\n", c->text[c->at])) c->at++;
}

/* Behind the string that begins here. */
static void string(cursor *c) {
  for (c->at++; more(c) && c->text[c->at] != '"'; c->at++)
    if (c->text[c->at] == '\\') c->at++;
  c->at++;
}

/* Behind the value that begins here. */
static void value(cursor *c) {
  size_t depth = 0;
  do {
    const char x = more(c) ? c->text[c->at] : 0;
    if (!x) return;
    if (x == '"') {
      string(c);
    } else if (x == '{' || x == '[') {
      depth++, c->at++;
    } else if (x == '}' || x == ']') {
      depth--, c->at++;
    } else if (depth) {
      c->at++;
    } else
      while (more(c) && !strchr(" \t\r\n,]}", c->text[c->at])) c->at++;
  } while (depth);
}

/* Which of its container's members it is; -1: none of them. */
static int place_of(const hn_json_way *w) {
  if (json_is_array(w->in)) return (int)w->index;
  const char *key;
  json_t *member;
  int i = 0;
  json_object_foreach(w->in, key, member) {
    if (strcmp(key, w->key) == 0) return i;
    i++;
  }
  return -1;
}

/* From the beginning of the container to its i-th member. */
static void enter(cursor *c, bool object, int i) {
  c->at++;
  for (;; i--) {
    blanks(c);
    if (object) {
      string(c);
      blanks(c);
      c->at++; /* the colon */
      blanks(c);
    }
    if (!i) return;
    value(c);
    blanks(c);
    c->at++; /* the comma */
  }
}

static void go(cursor *c, const hn_json_way *w) {
  if (!w->up) {
    blanks(c);
    return;
  }
  go(c, w->up);
  const int i = place_of(w);
  if (i >= 0) enter(c, json_is_object(w->in), i);
}

hn_json_position hn_json_where(const char *text, size_t length, const hn_json_way *way) {
  cursor c = {text, length, 0};
  hn_json_position p = {1, 1};
  go(&c, way);
  for (size_t i = 0; i < c.at && i < length; i++) {
    p.column++;
    if (text[i] == '\n') p = (hn_json_position){p.line + 1, 1};
  }
  return p;
}
