#ifdef HN_HAVE_CUPTI
#include "backends/cuda/driver/dl_cupti.h"

static const hn_dl_library library = HN_CUPTI_LIBRARY(
    "profiles are made from CUDA events without it; it comes with the CUDA toolkit (extras/CUPTI)");

#define HN_DL_TABLE hn_dl_cupti
static const hn_dl_symbol symbols[] = {HN_CUPTI_SYMBOLS(HN_DL_SYMBOL)};

hone_status hn_dl_cupti_load(hn_dl_cupti *t, char *path, size_t size, hone_error *error) {
  return hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, t, path, size, error);
}
#else
typedef int hn_dl_cupti_absent; /* ISO C wants a declaration in every file */
#endif
