/* Opening a GPU, and what hone knows of it. */
#include "backends/cuda/driver/device.h"

#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/modules.h"
#include "backends/cuda/driver/queue.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ finding it */

/* The driver is there but offers no device: all of these are answers of cuInit or of counting. */
static hone_status no_device(hn_device *d, CUresult r, const char *call, hone_error *error) {
  char text[200];
  hn_cuda_answer(&d->cu, r, text, sizeof text);
  hn_fail(error, HONE_ERROR_MISSING, "device cuda is not available: %s: %s", call, text);
  hn_error_hint(error, "%s",
                r == CUDA_ERROR_NO_DEVICE
                    ? "no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES?); --device cpu works"
                    : "check NVIDIA's driver (nvidia-smi); --device cpu works");
  return HONE_ERROR_MISSING;
}

/* Libraries and the device's handle; no context yet. */
static hone_status find(hn_device *d, uint32_t index, hone_error *error) {
  hone_status status = hn_dl_cuda_load(&d->cu, NULL, 0, error);
  if (status != HONE_OK) return status;
  d->index = index;
  CUresult r = d->cu.cuInit(0);
  if (r != CUDA_SUCCESS) return no_device(d, r, "cuInit", error);
  int count = 0;
  r = d->cu.cuDeviceGetCount(&count);
  if (r != CUDA_SUCCESS || !count)
    return no_device(d, r != CUDA_SUCCESS ? r : CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount", error);
  if (index >= (uint32_t)count) {
    hn_fail(error, HONE_ERROR_MISSING, "there is no device cuda:%u", index);
    hn_error_expected(error, "cuda:0%s", count > 1 ? " or another" : "");
    hn_error_hint(error, "%d GPU%s visible", count, count > 1 ? "s are" : " is");
    return HONE_ERROR_MISSING;
  }
  status = HN_CU(d, error, cuDeviceGet, &d->handle, (int)index);
  if (status == HONE_OK) status = HN_CU(d, error, cuDeviceGetName, d->name, sizeof d->name, d->handle);
  if (status == HONE_OK) status = HN_CU(d, error, cuDriverGetVersion, &d->driver);
  if (status == HONE_OK) status = hn_dl_nvrtc_load(&d->rtc, d->library, sizeof d->library, error);
  if (status == HONE_OK && d->rtc.nvrtcVersion(&d->rtc_major, &d->rtc_minor) != NVRTC_SUCCESS)
    status = hn_fail(error, HONE_ERROR_MISSING, "%s does not say its version", d->library);
  return status;
}

/* The architecture that kernels are compiled for: the device's own where this NVRTC knows it, else the
 * nearest of the same generation below it. */
static hone_status choose_target(hn_device *d, hone_error *error) {
  const int arch = (int)d->machine.arch;
  int n = 0, known[128], best = 0;
  if (d->rtc.nvrtcGetNumSupportedArchs(&n) != NVRTC_SUCCESS || n > 128 ||
      d->rtc.nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
    n = 0;
  for (int i = 0; i < n; i++)
    if (known[i] / 10 == arch / 10 && known[i] <= arch && known[i] > best) best = known[i];
  if (!best) {
    hn_fail(error, HONE_ERROR_MISSING, "NVRTC %d.%d cannot compile for %s (sm_%u)", d->rtc_major,
            d->rtc_minor, d->name, d->machine.arch);
    hn_error_hint(error, "install libnvrtc of a CUDA toolkit for this GPU; --device cpu works without it");
    return HONE_ERROR_MISSING;
  }
  /* The "a" variants have what only this very chip has: wgmma, TMA's multicast and the like. For an older
   * chip than this one there is PTX, which the driver compiles. */
  d->ptx = arch != (int)d->arch;
  snprintf(d->target, sizeof d->target, "%s_%d%s", d->ptx ? "compute" : "sm", best,
           !d->ptx && best == arch && best >= 90 ? "a" : "");
  return HONE_OK;
}

/* ------------------------------------------------------------------ what it can do */

/* FLOPs of a multiprocessor and clock: f32 on CUDA cores; f16 on tensor cores with f32 sums; tf32. KiB of
 * shared memory that a block can have. From the architecture whitepapers and the programming guide's table of
 * compute capabilities; GeForce chips of a generation do half as many FLOPs on tensor cores with f32 sums. */
static const struct {
  uint32_t arch;
  int f32, half, tf32, shared;
} rates[] = {
    {75, 128, 1024, 0, 64},      {80, 128, 2048, 1024, 163},  {86, 256, 1024, 512, 99},
    {87, 256, 2048, 1024, 163},  {88, 256, 1024, 512, 99},    {90, 256, 4096, 2048, 227},
    {100, 256, 8192, 4096, 227}, {103, 256, 8192, 4096, 227}, {110, 256, 4096, 2048, 227},
    {120, 256, 1024, 512, 99},
};

static int attribute(hn_device *d, CUdevice_attribute a) {
  int v = 0;
  return d->cu.cuDeviceGetAttribute(&v, a, d->handle) == CUDA_SUCCESS && v > 0 ? v : 0;
}

static size_t row_of(uint32_t arch) {
  size_t row = 0;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    if (rates[i].arch <= arch) row = i;
  return row;
}

static void describe(hn_device *d, uint32_t threads) {
  const double clock = attribute(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e3;
  const double memory = attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1e3;
  const int bus = attribute(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  const int sms = attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const size_t row = row_of(d->machine.arch);
  const double all = sms * clock;
  d->machine = (hone_machine){
      .device = "cuda",
      .threads = threads,
      .peak_flops = all * rates[row].f32,
      .dram_bytes = 2 * memory * bus / 8, /* both edges of the clock */
      .cache_bytes = all * 32,            /* of the 64 bytes that a multiprocessor can ask for */
      .l1 = (size_t)attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
      .l2 = (size_t)attribute(d, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
      .arch = d->machine.arch,
      .processors = (uint32_t)sms,
      .shared_bytes = (size_t)attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
      .half_flops = all * rates[row].half,
      .tf32_flops = all * (rates[row].tf32 ? rates[row].tf32 : rates[row].f32),
      .launch_s = 1.3e-6,
      .emulated = d->cu.emulated && d->cu.emulated(),
  };
  /* Without clocks (virtual GPUs hide them) ratios are all that is left. */
  if (!(d->machine.peak_flops > 0)) {
    d->machine.peak_flops = 20e12;
    d->machine.half_flops = 20e12 * rates[row].half / rates[row].f32;
    d->machine.tf32_flops = rates[row].tf32 ? d->machine.half_flops / 2 : 20e12;
    d->machine.cache_bytes = 3e12;
  }
  if (!(d->machine.dram_bytes > 0)) d->machine.dram_bytes = 1e12;
  if (!d->machine.shared_bytes) d->machine.shared_bytes = 48 << 10;
  const size_t shared = (size_t)rates[row].shared << 10;
  if (d->machine.arch != d->arch && d->machine.shared_bytes > shared) d->machine.shared_bytes = shared;
}

/* "sm_80" on a newer chip: tactics see the older one and its shared memory, and texts are compiled for it, so
 * that what would run there can be tested here. */
static hone_status limit_arch(hn_device *d, const char *isa, hone_error *error) {
  if (!isa) isa = getenv("HONE_CUDA_ARCH");
  if (!isa || !*isa) return HONE_OK;
  char *end = NULL;
  const unsigned long arch = strtoul(strncmp(isa, "sm_", 3) == 0 ? isa + 3 : isa, &end, 10);
  if (!arch || *end || arch > d->arch) {
    hn_fail(error, HONE_ERROR_USAGE, "no architecture of this device: '%.32s'", isa);
    hn_error_expected(error, "at most sm_%u", d->arch);
    return HONE_ERROR_USAGE;
  }
  d->machine.arch = (uint32_t)arch;
  return HONE_OK;
}

enum { OLDEST = 75 }; /* whose instructions device/turing.cuh has */

/* What the device is, and what tactics are to take it for. */
static hone_status identify(hn_device *d, uint32_t threads, const char *isa, hone_error *error) {
  d->machine.arch = d->arch = (uint32_t)(attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                                         attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const hone_status status = limit_arch(d, isa, error);
  if (status != HONE_OK) return status;
  if (d->machine.arch < OLDEST) {
    hn_fail(error, HONE_ERROR_MISSING, "%s is of architecture sm_%u", d->name, d->machine.arch);
    hn_error_expected(error, "sm_%d (Turing) or later", OLDEST);
    hn_error_hint(error, "--device cpu works without it");
    return HONE_ERROR_MISSING;
  }
  describe(d, threads);
  return HONE_OK;
}

/* ------------------------------------------------------------------ open and close */

static hn_device *new_device(void) {
  hn_device *d = hn_calloc(1, sizeof *d);
  if (!d) return NULL;
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->fault_lock, NULL);
  d->dry = (hn_cuda_queue){.device = d, .dry = true};
  d->modules = hn_cuda_modules_create(d);
  if (d->modules) return d;
  hn_cuda_close(d);
  return NULL;
}

static hone_status open_context(hn_device *d, hone_error *error) {
  hone_status status = HN_CU(d, error, cuDevicePrimaryCtxRetain, &d->context, d->handle);
  if (status == HONE_OK) status = hn_cuda_enter(d, error);
  return status;
}

hone_status hn_cuda_open(uint32_t index, uint32_t threads, const char *isa, hn_device **out,
                         hone_error *error) {
  *out = NULL;
  if (!threads) threads = hn_thread_count();
  hn_device *d = new_device();
  if (!d) return hn_fail_memory(error, sizeof *d, "the CUDA device");
  hone_status status = find(d, index, error);
  if (status == HONE_OK) status = identify(d, threads, isa, error);
  if (status == HONE_OK) status = choose_target(d, error);
  if (status == HONE_OK) status = open_context(d, error);
  if (status == HONE_OK && !hn_cuda_memory_open(d))
    status = hn_fail_memory(error, sizeof *d, "the CUDA device");
  if (status == HONE_OK) status = hn_pool_create(threads, &d->pool, error);
  if (status == HONE_OK) {
    d->machine.libraries = hn_cuda_libraries();
    status = hn_cuda_announce(&d->dry, &d->machine, error);
  }
  if (status == HONE_OK)
    *out = d;
  else
    hn_cuda_close(d);
  return status;
}

void hn_cuda_close(hn_device *d) {
  if (!d) return;
  hn_cuda_withdraw(&d->dry);
  hn_pool_destroy(d->pool);
  if (d->context) {
    d->cu.cuCtxSetCurrent(d->context);
    hn_cuda_queue_close(d, d->own);
    /* Last made, first gone: a library's plans go before its handle. */
    while (d->kept.len) {
      hn_cuda_kept *k = &d->kept.ptr[--d->kept.len];
      k->destroy(k->object);
      hn_free(k->key);
    }
    if (d->fence) d->cu.cuEventDestroy(d->fence);
  }
  hn_vec_free(&d->kept);
  hn_cuda_modules_destroy(d->modules);
  hn_mempool_destroy(d->memory);
  hn_mempool_destroy(d->host);
  if (d->context) {
    d->cu.cuCtxSetCurrent(NULL);
    d->cu.cuDevicePrimaryCtxRelease(d->handle);
  }
  hn_str_free(&d->warnings);
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->fault_lock);
  hn_free(d);
}

hone_status hn_cuda_about(uint32_t index, hone_device_info *out, hone_error *error) {
  hn_device *d = new_device();
  if (!d) return hn_fail_memory(error, sizeof *d, "the CUDA device");
  hone_status status = find(d, index, error);
  if (status == HONE_OK) status = identify(d, hn_thread_count(), NULL, error);
  if (status == HONE_OK && out) {
    size_t free_bytes = 0, total = 0;
    memset(out, 0, sizeof *out);
    status = open_context(d, error);
    if (status == HONE_OK) status = HN_CU(d, error, cuMemGetInfo, &free_bytes, &total);
    if (status == HONE_OK) {
      snprintf(out->name, sizeof out->name, "%s", d->name);
      snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", d->driver / 1000, d->driver % 1000 / 10);
      char libraries[sizeof out->libraries];
      hn_cuda_libraries_text(libraries, sizeof libraries);
      snprintf(out->libraries, sizeof out->libraries, "%s", libraries[0] ? libraries + 3 : ""); /* " | " */
      snprintf(out->compiler, sizeof out->compiler, "NVRTC %d.%d", d->rtc_major, d->rtc_minor);
      out->memory_bytes = total;
      out->memory_free = free_bytes;
      out->machine = d->machine;
    }
  }
  hn_cuda_close(d);
  return status;
}
