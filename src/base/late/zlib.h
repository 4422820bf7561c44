/* zlib, after hn_late_need(HN_LATE_LIBRARY_ZLIB). */
#ifndef HN_BASE_LATE_ZLIB_H
#define HN_BASE_LATE_ZLIB_H

#include "base/symbols.h"
#include "late_names.h"

#include <zlib.h>

#ifdef HN_LATE_ZLIB
#define HN_ZLIB_SYMBOLS(X)                                                                                   \
  X(crc32_z)                                                                                                 \
  X(inflate)                                                                                                 \
  X(inflateEnd)                                                                                              \
  X(inflateInit2_)                                                                                           \
  X(inflateReset)

typedef struct hn_late_zlib {
  HN_ZLIB_SYMBOLS(HN_DL_FIELD)
} hn_late_zlib;
extern hn_late_zlib hn_zlib;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define crc32_z hn_zlib.crc32_z
#define inflate hn_zlib.inflate
#define inflateEnd hn_zlib.inflateEnd
#define inflateInit2_ hn_zlib.inflateInit2_
#define inflateReset hn_zlib.inflateReset
#endif
#endif

#endif
