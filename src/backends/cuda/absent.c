/* The CUDA backend of a build that had no CUDA headers. */
#include "backends/cuda/backend.h"

#include "base/error.h"

#include <hone/cuda.h>

static hone_status absent(hone_error *error) {
  hn_fail(error, HONE_ERROR_MISSING, "device cuda is not available: this build of hone has no CUDA backend");
  hn_error_hint(error, "build hone where CUDA's headers are; --device cpu works without them");
  return HONE_ERROR_MISSING;
}

static hone_status absent_open(uint32_t index, uint32_t threads, const char *isa, hn_device **out,
                               hone_error *error) {
  (void)index, (void)threads, (void)isa;
  *out = NULL;
  return absent(error);
}

static hone_status absent_about(uint32_t index, hone_device_info *out, hone_error *error) {
  (void)index, (void)out;
  return absent(error);
}

/* No device can be opened, so nothing else is ever called. */
const hn_backend hn_backend_cuda = {.name = "cuda", .open = absent_open, .about = absent_about};

/* Plugins that were compiled with hone/cuda.h must load here, too. */
hone_status hone_cuda_launch(const hone_step_run *run, const hone_cuda_kernel *kernel, const void *args,
                             size_t size, hone_error *error) {
  (void)run, (void)kernel, (void)args, (void)size;
  return absent(error);
}

void *hone_cuda_stream(const hone_step_run *run) {
  (void)run;
  return NULL;
}
