#include "backends/cuda/driver/dl_cuda.h"

#include "base/error.h"

static const char *const names[] = {"libcuda.so.1", NULL};
static const hn_dl_library library = {
    .title = "NVIDIA's driver",
    .env = "HONE_LIBCUDA",
    .names = names,
    .without = "install NVIDIA's driver for this GPU; --device cpu works without it",
};

#define HN_DL_TABLE hn_dl_cuda
static const hn_dl_symbol symbols[] = {
    HN_CUDA_SYMBOLS(HN_DL_SYMBOL) HN_CUDA_SYMBOLS_OPTIONAL(HN_DL_OPTIONAL)
    /* The newest toolkit's name for it is younger than many drivers; what it does is the same. */
    {"cuEventElapsedTime", offsetof(hn_dl_cuda, elapsed), true},
    {HN_CUDA_EMULATED, offsetof(hn_dl_cuda, emulated), true}};

hone_status hn_dl_cuda_load(hn_dl_cuda *t, char *path, size_t size, hone_error *error) {
  hone_status status = hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, t, path, size, error);
  if (status != HONE_OK) return status;
  if (t->cuEventElapsedTime) t->elapsed = t->cuEventElapsedTime;
  if (t->elapsed) return HONE_OK;
  hn_fail(error, HONE_ERROR_MISSING, "%s is too old: it has no cuEventElapsedTime", library.title);
  hn_error_hint(error, "%s", library.without);
  return HONE_ERROR_MISSING;
}
