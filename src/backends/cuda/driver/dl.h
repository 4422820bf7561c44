/* Libraries of NVIDIA that may or may not be on the machine: tables of functions (base/symbols.h), filled by
 * dlopen. */
#ifndef HN_CUDA_DRIVER_DL_H
#define HN_CUDA_DRIVER_DL_H

#include "base/symbols.h"

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hn_dl_library {
  const char *title;        /* "the NVIDIA driver" */
  const char *env;          /* environment variable that names the file to load instead, "HONE_LIBCUDA" */
  const char *const *names; /* file names, best first; NULL ends the list */
  bool toolkit;             /* look in the CUDA toolkit's folders too */
  const char *without;      /* what works without it, and what to install: the error's hint */
} hn_dl_library;

/* CUPTI, of which two tables are made. */
#define HN_CUPTI_LIBRARY(hint)                                                                               \
  {                                                                                                          \
    .title = "CUPTI", .env = "HONE_LIBCUPTI",                                                                \
    .names = (const char *const[]){"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL},                 \
    .toolkit = true, .without = hint                                                                         \
  }

/* Finds the library, first beside hone itself, then where the system's loader looks, then in the toolkit's
 * folders; fills `table`. The library stays loaded. path (of `size` bytes, may be NULL): the name that it was
 * found by. Fails with HONE_ERROR_MISSING, naming the library and what of it is missing. */
hone_status hn_dl_load(const hn_dl_library *library, const hn_dl_symbol *symbols, size_t n, void *table,
                       char *path, size_t size, hone_error *error);

#endif
