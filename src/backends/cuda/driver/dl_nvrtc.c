#include "backends/cuda/driver/dl_nvrtc.h"

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
static const hn_dl_library library = {
    .title = "NVRTC, the compiler of hone's GPU kernels",
    .env = "HONE_LIBNVRTC",
    .names = names,
    .toolkit = true,
    .without = "install the CUDA toolkit's libnvrtc, or set CUDA_PATH or HONE_LIBNVRTC; --device cpu works "
               "without it",
};

#define HN_DL_TABLE hn_dl_nvrtc
static const hn_dl_symbol symbols[] = {HN_NVRTC_SYMBOLS(HN_DL_SYMBOL)};

hone_status hn_dl_nvrtc_load(hn_dl_nvrtc *t, char *path, size_t size, hone_error *error) {
  return hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, t, path, size, error);
}
