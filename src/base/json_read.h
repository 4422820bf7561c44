/* Reading JSON, by jansson. */
#ifndef HN_BASE_JSON_READ_H
#define HN_BASE_JSON_READ_H

#include <jansson.h>

/* json_loadb, where a lack of memory counts for hn_settle. */
json_t *hn_json_load(const char *text, size_t length, size_t flags, json_error_t *where);

/* What json_loadb takes of memory for this text at most, by its tokens. */
size_t hn_json_need(const char *text, size_t length);

/* ---- where something stands in a JSON text that is right: jansson tells it of syntax errors only */

/* Where the outermost value stands. */
size_t hn_json_root(const char *text, size_t length);
/* The member or element that step[n] names (a key as it is spelt, or a number from 0) in the value at `at`,
 * or for NULL number n of them: where it stands, *value where its value does; `length`, and nothing in
 * *value, where there is none. */
size_t hn_json_step(const char *text, size_t length, size_t at, const char *step, size_t n, size_t *value);
/* Line and column, from 1 and in bytes, of a place. */
void hn_json_line_of(const char *text, size_t length, size_t at, int *line, int *column);
/* The same of what `path` names: keys and numbers of elements with '/' between them ("post/1/k": where the
 * key stands). Where a part of it is not there, of what is around it. */
void hn_json_place(const char *text, size_t length, const char *path, int *line, int *column);

#endif
