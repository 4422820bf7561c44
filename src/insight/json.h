/* Writing JSON into a text buffer. Reading is jansson's; writing is done here because names from a model may
 * hold bytes that are no UTF-8 (a tree of jansson refuses them) and a long log should not exist twice in
 * memory. */
#ifndef HN_INSIGHT_JSON_H
#define HN_INSIGHT_JSON_H

#include "base/str.h"

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
/* Line break for readers; ignored by parsers. */
void hn_json_line(hn_str *out);

#endif
