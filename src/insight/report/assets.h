/* Files of assets/, embedded at build time (assets/CMakeLists.txt). */
#ifndef HN_INSIGHT_ASSETS_H
#define HN_INSIGHT_ASSETS_H

#include <stddef.h>

typedef struct hn_asset {
  const char *name; /* file name */
  const char *data; /* NUL-terminated */
  size_t size;
} hn_asset;

extern const hn_asset hn_assets[];
extern const size_t hn_asset_count;

#endif
