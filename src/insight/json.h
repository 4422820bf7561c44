/* Writing JSON into a text buffer. Reading is jansson's; writing is done here because names from a model may
 * hold bytes that are no UTF-8 (a tree of jansson refuses them) and a long log should not exist twice in
 * memory. */
#ifndef HN_INSIGHT_JSON_H
#define HN_INSIGHT_JSON_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* All take the key of the value, or NULL inside an array (and for the outermost value). Commas are put where
 * needed. Text is written so that it can stand inside an HTML script element: '<', '>', '&' are escaped;
 * bytes that are no UTF-8 become U+FFFD. */
void hn_json_open(hn_str *out, const char *key, char bracket);     /* '{' or '[' */
void hn_json_close(hn_str *out, char bracket);                     /* '}' or ']' */
void hn_json_text(hn_str *out, const char *key, const char *text); /* NULL: null */
void hn_json_num(hn_str *out, const char *key, double value);      /* not finite: null */
void hn_json_int(hn_str *out, const char *key, int64_t value);
void hn_json_uint(hn_str *out, const char *key, uint64_t value);
void hn_json_bool(hn_str *out, const char *key, int value);
void hn_json_null(hn_str *out, const char *key);
void hn_json_texts(hn_str *out, const char *key, const char *const *texts, size_t n); /* an array */
/* Line break for readers; ignored by parsers. */
void hn_json_line(hn_str *out);

/* Structs whose fields are written one after another, by a list of them. */
typedef enum hn_json_kind {
  HN_JSON_DOUBLE,
  HN_JSON_TEXT,
  HN_JSON_I32,
  HN_JSON_I64,
  HN_JSON_U32,
  HN_JSON_U64,
  HN_JSON_BOOL
} hn_json_kind;

typedef struct hn_json_member {
  const char *key; /* NULL ends a list */
  size_t offset;
  hn_json_kind kind;
  enum { HN_JSON_ALWAYS, HN_JSON_UNLESS_ZERO } when;
} hn_json_member;

#define HN_JSON_KIND(type, field)                                                                            \
  _Generic(((type *)0)->field, double: HN_JSON_DOUBLE, const char *: HN_JSON_TEXT, int32_t: HN_JSON_I32,      \
           int64_t: HN_JSON_I64, uint32_t: HN_JSON_U32, uint64_t: HN_JSON_U64, bool: HN_JSON_BOOL)
#define HN_JSON_AS(type, key, field, when)                                                                   \
  { key, offsetof(type, field), HN_JSON_KIND(type, field), when }
#define HN_JSON(type, field) HN_JSON_AS(type, #field, field, HN_JSON_ALWAYS)
#define HN_JSON_SET(type, field)                                                                             \
  HN_JSON_AS(type, #field, field, HN_JSON_UNLESS_ZERO) /* left out when 0 or NULL */

void hn_json_members(hn_str *out, const hn_json_member *list, const void *object);
/* "key":{...}, and a line break. */
void hn_json_object(hn_str *out, const char *key, const hn_json_member *list, const void *object);
/* "key":[{...}, ...] of n objects of this size, and a line break. */
void hn_json_objects(hn_str *out, const char *key, const hn_json_member *list, const void *objects, size_t n,
                     size_t size);

#endif
