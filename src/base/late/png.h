/* libpng's simplified interface, after hn_late_need(HN_LATE_LIBRARY_PNG). */
#ifndef HN_BASE_LATE_PNG_H
#define HN_BASE_LATE_PNG_H

#include "base/symbols.h"
#include "late_names.h"

#include <png.h>

#ifdef HN_LATE_PNG
#define HN_PNG_SYMBOLS(X)                                                                                    \
  X(png_image_begin_read_from_memory)                                                                        \
  X(png_image_finish_read)                                                                                   \
  X(png_image_free)

typedef struct hn_late_png {
  HN_PNG_SYMBOLS(HN_DL_FIELD)
} hn_late_png;
extern hn_late_png hn_png;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define png_image_begin_read_from_memory hn_png.png_image_begin_read_from_memory
#define png_image_finish_read hn_png.png_image_finish_read
#define png_image_free hn_png.png_image_free
#endif
#endif

#endif
