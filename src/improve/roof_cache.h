/* Measured peaks are kept in small text files in the cache folder: a line that says of what they are, then
 * what was measured, a line each. */
#ifndef HN_IMPROVE_ROOF_CACHE_H
#define HN_IMPROVE_ROOF_CACHE_H

#include "base/str.h"

/* The lines that were kept under this key; false: none. The caller frees *lines. */
bool hn_roof_cache_read(const char *key, hn_str *lines);
/* A cache that cannot be written costs some seconds the next time and nothing else. */
void hn_roof_cache_write(const char *key, const hn_str *lines);
/* The number that stands behind `name` at the beginning of a line; false: there is none. */
bool hn_roof_cache_number(const hn_str *lines, const char *name, double *value);

#endif
