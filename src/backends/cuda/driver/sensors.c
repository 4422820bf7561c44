/* What NVML says about the GPU right now. */
#include "backends/cuda/driver/sensors.h"

#include "backends/cuda/driver/dl_nvml.h"
#include "base/error.h"

#include <stdio.h>

static struct {
  pthread_mutex_t lock;
  bool tried;
  hone_status status;
  hone_error why;
  hn_dl_nvml nvml;
} lib = {.lock = PTHREAD_MUTEX_INITIALIZER};

static hone_status nvml(int result, const char *call, hone_error *error) {
  if (result == 0) return HONE_OK;
  return hn_fail(error, HONE_ERROR_MISSING, "NVML refuses: %s: %s", call, lib.nvml.error(result));
}

/* NVML stays initialised: that takes longer than everything else here. */
static hone_status load(hone_error *error) {
  pthread_mutex_lock(&lib.lock);
  if (!lib.tried) {
    lib.status = hn_dl_nvml_load(&lib.nvml, NULL, 0, &lib.why);
    if (lib.status == HONE_OK) lib.status = nvml(lib.nvml.init(), "nvmlInit", &lib.why);
    lib.tried = true;
  }
  pthread_mutex_unlock(&lib.lock);
  if (lib.status != HONE_OK && error) *error = lib.why;
  return lib.status;
}

static hone_status find(hn_device *d, hn_nvml_handle *out, hone_error *error) {
  hone_status status = load(error);
  int domain = 0, bus = 0, device = 0;
  if (status != HONE_OK) return status;
  const struct {
    CUdevice_attribute what;
    int *at;
  } parts[] = {{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &domain},
               {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus},
               {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &device}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts && status == HONE_OK; i++)
    status = HN_CU(d, error, cuDeviceGetAttribute, parts[i].at, parts[i].what, d->handle);
  if (status != HONE_OK) return status;
  char id[40];
  snprintf(id, sizeof id, "%08x:%02x:%02x.0", (unsigned)domain, (unsigned)bus, (unsigned)device);
  return nvml(lib.nvml.by_bus(id, out), "nvmlDeviceGetHandleByPciBusId", error);
}

hone_status hn_cuda_sensors(hn_device *d, hn_sensor *out, size_t most, size_t *n, hone_error *error) {
  hn_nvml_handle h;
  *n = 0;
  hone_status status = find(d, &h, error);
  if (status != HONE_OK) return status;
  const hn_dl_nvml *l = &lib.nvml;
  hn_nvml_utilization use = {0};
  unsigned v = 0;
  unsigned long long reasons = 0;
#define SENSOR(ok, label, what, number)                                                                      \
  if (*n < most && (ok)) out[(*n)++] = (hn_sensor){label, what, number}
  SENSOR(l->temperature(h, HN_NVML_TEMPERATURE_GPU, &v) == 0, "temperature", "C", v);
  SENSOR(l->clock(h, HN_NVML_CLOCK_SM, &v) == 0, "sm_clock", "MHz", v);
  SENSOR(l->max_clock(h, HN_NVML_CLOCK_SM, &v) == 0, "sm_clock_most", "MHz", v);
  SENSOR(l->clock(h, HN_NVML_CLOCK_MEMORY, &v) == 0, "memory_clock", "MHz", v);
  SENSOR(l->power(h, &v) == 0, "power", "W", v / 1e3);
  SENSOR(l->power_limit && l->power_limit(h, &v) == 0, "power_limit", "W", v / 1e3);
  SENSOR(l->utilization && l->utilization(h, &use) == 0, "gpu_busy", "%", use.gpu);
  SENSOR(l->throttled && l->throttled(h, &reasons) == 0, "throttle_reasons", "bits", (double)reasons);
#undef SENSOR
  return HONE_OK;
}
