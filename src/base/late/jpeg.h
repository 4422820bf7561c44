/* libjpeg, after hn_late_need(HN_LATE_LIBRARY_JPEG). */
#ifndef HN_BASE_LATE_JPEG_H
#define HN_BASE_LATE_JPEG_H

#include "base/symbols.h"
#include "late_names.h"

#include <stdio.h>

#include <jpeglib.h> /* after stdio.h */
#include <jerror.h>

#ifdef HN_LATE_JPEG
#define HN_JPEG_SYMBOLS(X)                                                                                   \
  X(jpeg_CreateDecompress)                                                                                   \
  X(jpeg_destroy_decompress)                                                                                 \
  X(jpeg_finish_decompress)                                                                                  \
  X(jpeg_mem_src)                                                                                            \
  X(jpeg_read_header)                                                                                        \
  X(jpeg_read_scanlines)                                                                                     \
  X(jpeg_start_decompress)                                                                                   \
  X(jpeg_std_error)

typedef struct hn_late_jpeg {
  HN_JPEG_SYMBOLS(HN_DL_FIELD)
} hn_late_jpeg;
extern hn_late_jpeg hn_jpeg;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define jpeg_CreateDecompress hn_jpeg.jpeg_CreateDecompress
#define jpeg_destroy_decompress hn_jpeg.jpeg_destroy_decompress
#define jpeg_finish_decompress hn_jpeg.jpeg_finish_decompress
#define jpeg_mem_src hn_jpeg.jpeg_mem_src
#define jpeg_read_header hn_jpeg.jpeg_read_header
#define jpeg_read_scanlines hn_jpeg.jpeg_read_scanlines
#define jpeg_start_decompress hn_jpeg.jpeg_start_decompress
#define jpeg_std_error hn_jpeg.jpeg_std_error
#endif
#endif

#endif
