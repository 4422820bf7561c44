#include "backends/cuda/driver/dl_cublaslt.h"

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"

#if HN_HAVE_CUBLASLT

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
static const hn_dl_library library = {
    .title = "cuBLASLt",
    .env = "HONE_LIBCUBLASLT",
    .names = names,
    .toolkit = true,
    .without = "hone's own kernels work without it; HONE_LIBCUBLASLT names the file to load",
};

#define HN_DL_TABLE hn_dl_cublaslt
static const hn_dl_symbol symbols[] = {HN_CUBLASLT_SYMBOLS(HN_DL_SYMBOL)};

static hn_dl_cublaslt table;
static hone_status opened;
static hone_error missing;

static void open_once(void) {
  opened = hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, &table, NULL, 0, &missing);
}

const hn_dl_cublaslt *hn_dl_cublaslt_get(hone_error *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  if (!opened) return &table;
  if (error) *error = missing;
  return NULL;
}

hone_status hn_cublaslt_fail(const hn_dl_cublaslt *api, cublasStatus_t status, const char *what,
                             hone_error *error) {
  const hone_status as = status == CUBLAS_STATUS_NOT_SUPPORTED ? HONE_ERROR_UNSUPPORTED : HONE_ERROR_DEVICE;
  return hn_fail(error, as, "cuBLASLt: %s: %s", what, api->cublasLtGetStatusString(status));
}

bool hn_cublaslt_version(char *buf, size_t size) {
  const hn_dl_cublaslt *api = hn_dl_cublaslt_get(NULL);
  if (size) *buf = 0;
  if (!api) return false;
  const size_t v = api->cublasLtGetVersion(); /* 130100: major * 10000 + minor * 100 + patch */
  snprintf(buf, size, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
  return true;
}

#else

bool hn_cublaslt_version(char *buf, size_t size) {
  if (size) *buf = 0;
  return false;
}

#endif
