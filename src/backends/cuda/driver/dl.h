/* Libraries that may or may not be on the machine: tables of functions, typed by the vendor's headers and
 * filled by dlopen. A library is a list of symbols, HN_X_SYMBOLS(X) with one X(name) each, from which come
 *   - the table:   typedef struct hn_dl_x { HN_X_SYMBOLS(HN_DL_FIELD) } hn_dl_x;
 *   - its loader:  static const hn_dl_symbol symbols[] = {HN_X_SYMBOLS(HN_DL_SYMBOL)}; with HN_DL_TABLE
 * defined as the table's type. A header's macro that maps a name to its newest version (cuMemAlloc to
 * cuMemAlloc_v2) maps the field, the symbol and the call table.cuMemAlloc(...) alike. */
#ifndef HN_CUDA_DRIVER_DL_H
#define HN_CUDA_DRIVER_DL_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>

#define HN_DL_TEXT_(name) #name
#define HN_DL_TEXT(name) HN_DL_TEXT_(name)
#define HN_DL_FIELD(name) __typeof__(name) *name;
#define HN_DL_SYMBOL(name) {HN_DL_TEXT(name), offsetof(HN_DL_TABLE, name), false},
#define HN_DL_OPTIONAL(name) {HN_DL_TEXT(name), offsetof(HN_DL_TABLE, name), true}, /* may stay NULL */

typedef struct hn_dl_symbol {
  const char *name;
  size_t offset; /* of the pointer in the table */
  bool optional;
} hn_dl_symbol;

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
