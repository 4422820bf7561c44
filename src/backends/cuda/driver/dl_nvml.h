/* NVML, the management library: clocks, temperature, power. Its header comes with no toolkit package that
 * hone asks for; these few prototypes have been the same since NVML 1. */
#ifndef HN_CUDA_DRIVER_DL_NVML_H
#define HN_CUDA_DRIVER_DL_NVML_H

#include "backends/cuda/driver/dl.h"

typedef struct hn_nvml_device *hn_nvml_handle; /* nvmlDevice_t */
enum { HN_NVML_CLOCK_SM = 1, HN_NVML_CLOCK_MEMORY = 2, HN_NVML_TEMPERATURE_GPU = 0 };

typedef struct hn_nvml_utilization {
  unsigned gpu, memory; /* percent of the last sample period */
} hn_nvml_utilization;

typedef struct hn_dl_nvml {
  int (*init)(void);
  int (*shutdown)(void);
  const char *(*error)(int result);
  int (*driver_version)(char *text, unsigned size);
  int (*by_bus)(const char *pci_bus_id, hn_nvml_handle *out);
  int (*temperature)(hn_nvml_handle d, int sensor, unsigned *celsius);
  int (*clock)(hn_nvml_handle d, int kind, unsigned *mhz);
  int (*max_clock)(hn_nvml_handle d, int kind, unsigned *mhz);
  int (*power)(hn_nvml_handle d, unsigned *milliwatts);
  int (*power_limit)(hn_nvml_handle d, unsigned *milliwatts);
  int (*utilization)(hn_nvml_handle d, hn_nvml_utilization *out);
  int (*throttled)(hn_nvml_handle d, unsigned long long *reasons);
} hn_dl_nvml;

hone_status hn_dl_nvml_load(hn_dl_nvml *table, char *path, size_t size, hone_error *error);

#endif
