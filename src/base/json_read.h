/* Reading JSON, by jansson. */
#ifndef HN_BASE_JSON_READ_H
#define HN_BASE_JSON_READ_H

#include <jansson.h>

/* json_loadb, where a lack of memory counts for hn_settle. */
json_t *hn_json_load(const char *text, size_t length, size_t flags, json_error_t *where);

/* What json_loadb takes of memory for this text at most, by its tokens. */
size_t hn_json_need(const char *text, size_t length);

/* Line and column, from 1, of what `path` names in a JSON text that is right: keys and numbers of elements
 * with
 * '/' between them ("post/1/k": where the key stands). Where a part of it is not there, of what is around it.
 */
void hn_json_place(const char *text, size_t length, const char *path, int *line, int *column);

#endif
