#include "api/chain/place.h"

#include "base/json_read.h"

#include <stdint.h>
#include <string.h>

/* Which of its container's members it is; SIZE_MAX: none of them. By number, since a key may be spelt in
 * several ways. */
static size_t place_of(const hn_json_way *w) {
  if (json_is_array(w->in)) return w->index;
  const char *key;
  json_t *member;
  size_t i = 0;
  json_object_foreach(w->in, key, member) {
    if (strcmp(key, w->key) == 0) return i;
    i++;
  }
  return SIZE_MAX;
}

/* Where the value stands that the way leads to; what is around it where the text has no such member. */
static size_t go(const char *text, size_t length, const hn_json_way *w) {
  if (!w->up) return hn_json_root(text, length);
  size_t at = go(text, length, w->up);
  hn_json_step(text, length, at, NULL, place_of(w), &at);
  return at;
}

hn_json_position hn_json_where(const char *text, size_t length, const hn_json_way *way) {
  hn_json_position p;
  hn_json_line_of(text, length, go(text, length, way), &p.line, &p.column);
  return p;
}
