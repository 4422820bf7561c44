#include "backends/cuda/driver/dl_nvml.h"

static const char *const names[] = {"libnvidia-ml.so.1", NULL};
static const hn_dl_library library = {
    .title = "NVML",
    .env = "HONE_LIBNVML",
    .names = names,
    .without = "clocks, temperature and power are not shown without it; it comes with NVIDIA's driver",
};

#define AT(field) offsetof(hn_dl_nvml, field)
static const hn_dl_symbol symbols[] = {
    {"nvmlInit_v2", AT(init), false},
    {"nvmlShutdown", AT(shutdown), false},
    {"nvmlErrorString", AT(error), false},
    {"nvmlSystemGetDriverVersion", AT(driver_version), false},
    {"nvmlDeviceGetHandleByPciBusId_v2", AT(by_bus), false},
    {"nvmlDeviceGetTemperature", AT(temperature), false},
    {"nvmlDeviceGetClockInfo", AT(clock), false},
    {"nvmlDeviceGetMaxClockInfo", AT(max_clock), false},
    {"nvmlDeviceGetPowerUsage", AT(power), false},
    {"nvmlDeviceGetPowerManagementLimit", AT(power_limit), true},
    {"nvmlDeviceGetUtilizationRates", AT(utilization), true},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", AT(throttled), true},
};

hone_status hn_dl_nvml_load(hn_dl_nvml *t, char *path, size_t size, hone_error *error) {
  return hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, t, path, size, error);
}
