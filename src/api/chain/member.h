/* Members of a chain's JSON: a table says which there are and where their values go. */
#ifndef HN_API_CHAIN_MEMBER_H
#define HN_API_CHAIN_MEMBER_H

#include "api/chain/place.h"
#include "base/arena.h"

#include <hone/status.h>
#include <stdint.h>

/* A JSON file that is being read. */
typedef struct hn_reading {
  const char *path, *folder; /* for errors, and what paths in it are relative to */
  const char *text;
  size_t length;
  hn_arena *keep; /* of what is read */
} hn_reading;

typedef enum hn_member_type {
  HN_MEMBER_REAL,  /* double, least..most; also a fraction as a text: "1/255" */
  HN_MEMBER_COUNT, /* int64_t, least..most */
  HN_MEMBER_FLAG,  /* bool */
  HN_MEMBER_WORD,  /* int: which of `words` */
  HN_MEMBER_TEXT,  /* const char * */
  HN_MEMBER_FILE,  /* const char *: a path, made relative to the folder of the JSON file */
  HN_MEMBER_THREE  /* float[3]: one number for all or three */
} hn_member_type;

typedef struct hn_member {
  const char *name; /* NULL ends the table */
  hn_member_type type;
  size_t at;
  double least, most;
  const char *const *words; /* ends with NULL */
} hn_member;

/* Records what is wrong with the value at `way`: file, line and column are its place. Returns status. */
hone_status hn_reading_fail(const hn_reading *r, const hn_json_way *way, hone_status status,
                            hone_error *error, const char *what, ...) __attribute__((format(printf, 5, 6)));
/* A member as one of the table's types. */
hone_status hn_member_read(const hn_reading *r, const hn_json_way *way, json_t *value, const hn_member *row,
                           void *to, hone_error *error);
/* The row of that name, or NULL. */
const hn_member *hn_member_find(const hn_member *rows, const char *name);
/* A text at `way`; other names its value in the error: "a path". */
hone_status hn_member_text(const hn_reading *r, const hn_json_way *way, json_t *value, const char *wants,
                           const char **out, hone_error *error);

#endif
