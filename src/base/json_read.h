/* Reading JSON, by jansson. */
#ifndef HN_BASE_JSON_READ_H
#define HN_BASE_JSON_READ_H

#include <jansson.h>

/* json_loadb, where a lack of memory counts for hn_settle. */
json_t *hn_json_load(const char *text, size_t length, size_t flags, json_error_t *where);

/* What json_loadb takes of memory for this text at most, by its tokens. */
size_t hn_json_need(const char *text, size_t length);

#endif
