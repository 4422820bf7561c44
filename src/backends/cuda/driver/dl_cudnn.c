#include "backends/cuda/driver/dl_cudnn.h"

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"

#if HN_HAVE_CUDNN

static const char *const names[] = {"libcudnn.so.9", NULL};
static const hn_dl_library library = {
    .title = "cuDNN",
    .env = "HONE_LIBCUDNN",
    .names = names,
    .toolkit = true,
    .without = "hone's own kernels work without it; HONE_LIBCUDNN names the file to load",
};

#define HN_DL_TABLE hn_dl_cudnn
static const hn_dl_symbol symbols[] = {HN_CUDNN_SYMBOLS(HN_DL_SYMBOL)};

static hn_dl_cudnn table;
static hone_status opened;
static hone_error missing;

static void open_once(void) {
  opened = hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, &table, NULL, 0, &missing);
}

const hn_dl_cudnn *hn_dl_cudnn_get(hone_error *error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  if (!opened) return &table;
  if (error) *error = missing;
  return NULL;
}

hone_status hn_cudnn_fail(const hn_dl_cudnn *api, cudnnStatus_t status, const char *what, hone_error *error) {
  char detail[256] = "";
  if (!error) return HONE_ERROR_DEVICE;
  api->cudnnGetLastErrorString(detail, sizeof detail);
  detail[sizeof detail - 1] = 0;
  const hone_status as = CUDNN_STATUS_CATEGORY((int)status) == CUDNN_STATUS_NOT_SUPPORTED
                             ? HONE_ERROR_UNSUPPORTED
                             : HONE_ERROR_DEVICE;
  hn_fail(error, as, "cuDNN: %s: %s%s%.150s", what, api->cudnnGetErrorString(status), *detail ? ": " : "",
          detail);
  return as;
}

bool hn_cudnn_version(char *buf, size_t size) {
  const hn_dl_cudnn *api = hn_dl_cudnn_get(NULL);
  if (size) *buf = 0;
  if (!api) return false;
  const size_t v = api->cudnnGetVersion(); /* 90100: major * 10000 + minor * 100 + patch */
  snprintf(buf, size, "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
  return true;
}

#else

bool hn_cudnn_version(char *buf, size_t size) {
  if (size) *buf = 0;
  return false;
}

#endif
