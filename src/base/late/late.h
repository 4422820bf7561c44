/* Libraries that few runs need: databases, pictures, archives, patterns, servers. A program that is linked
 * with them pays for each at every start, 0.05 to 0.3 ms, so they are loaded when they are first asked for.
 * Their headers here (sqlite.h, ...) turn calls of their functions into calls by a table, which is filled
 * then. Where a build is linked with them after all (HONE_LATE=OFF), calls are what they were. */
#ifndef HN_BASE_LATE_LATE_H
#define HN_BASE_LATE_LATE_H

#include <hone/status.h>

typedef enum hn_late_library {
  HN_LATE_LIBRARY_SQLITE,
  HN_LATE_LIBRARY_PNG,
  HN_LATE_LIBRARY_JPEG,
  HN_LATE_LIBRARY_ZLIB,
  HN_LATE_LIBRARY_PCRE2,
  HN_LATE_LIBRARY_MICROHTTPD,
  HN_LATE_LIBRARY_COUNT
} hn_late_library;

/* To be called before functions of the library are. It stays loaded. HONE_ERROR_MISSING where it is not
 * installed, or too old. Thread safe. */
hone_status hn_late_need(hn_late_library library, hone_error *error);

#endif
