/* Where in a JSON text the value stands that a chain's reader is at. */
#ifndef HN_API_CHAIN_PLACE_H
#define HN_API_CHAIN_PLACE_H

#include <jansson.h>
#include <stddef.h>

/* The way to a value: members and elements from the root on. */
typedef struct hn_json_way {
  const struct hn_json_way *up; /* NULL: this is the root */
  json_t *in;                   /* the object or array that it is in */
  const char *key;              /* of an object; the way to a key that is not there ends at the object */
  size_t index;                 /* of an array */
} hn_json_way;

typedef struct hn_json_position {
  int line, column; /* from 1; columns are bytes */
} hn_json_position;

/* `text` is what `root` and all on the way were read from, without an error and without duplicate members. */
hn_json_position hn_json_where(const char *text, size_t length, const hn_json_way *way);

#endif
