/* CUPTI's range profiler: counters of the hardware between two points. CUPTI of CUDA 12.6 and newer has it.
 */
#ifndef HN_CUDA_DRIVER_DL_COUNTERS_H
#define HN_CUDA_DRIVER_DL_COUNTERS_H

#include "backends/cuda/driver/dl.h"

#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

/* As in cupti_profiler_host.h, which only C++ can read. */
typedef struct CUpti_Profiler_Host_Object CUpti_Profiler_Host_Object;
typedef struct hn_host_initialize {
  size_t structSize;
  void *pPriv;
  int profilerType; /* 0: ranges */
  const char *pChipName;
  const uint8_t *pCounterAvailabilityImage;
  CUpti_Profiler_Host_Object *pHostObject;
} hn_host_initialize;
typedef struct hn_host_object {
  size_t structSize;
  void *pPriv;
  CUpti_Profiler_Host_Object *pHostObject;
} hn_host_object;
typedef struct hn_host_metrics {
  size_t structSize;
  void *pPriv;
  CUpti_Profiler_Host_Object *pHostObject;
  const char **ppMetricNames;
  size_t numMetrics;
} hn_host_metrics;
typedef struct hn_host_config_size {
  size_t structSize;
  void *pPriv;
  CUpti_Profiler_Host_Object *pHostObject;
  size_t configImageSize;
} hn_host_config_size;
typedef struct hn_host_config {
  size_t structSize;
  void *pPriv;
  CUpti_Profiler_Host_Object *pHostObject;
  size_t configImageSize;
  uint8_t *pConfigImage;
} hn_host_config;
typedef struct hn_host_evaluate {
  size_t structSize;
  void *pPriv;
  CUpti_Profiler_Host_Object *pHostObject;
  const uint8_t *pCounterDataImage;
  size_t counterDataImageSize;
  size_t rangeIndex;
  const char **ppMetricNames;
  size_t numMetrics;
  double *pMetricValues;
} hn_host_evaluate;

CUptiResult cuptiProfilerHostInitialize(hn_host_initialize *p);
CUptiResult cuptiProfilerHostDeinitialize(hn_host_object *p);
CUptiResult cuptiProfilerHostConfigAddMetrics(hn_host_metrics *p);
CUptiResult cuptiProfilerHostGetConfigImageSize(hn_host_config_size *p);
CUptiResult cuptiProfilerHostGetConfigImage(hn_host_config *p);
CUptiResult cuptiProfilerHostEvaluateToGpuValues(hn_host_evaluate *p);

#define HN_COUNTER_SYMBOLS(X)                                                                                \
  X(cuptiGetResultString)                                                                                    \
  X(cuptiProfilerInitialize)                                                                                 \
  X(cuptiDeviceGetChipName)                                                                                  \
  X(cuptiProfilerGetCounterAvailability)                                                                     \
  X(cuptiProfilerHostInitialize)                                                                             \
  X(cuptiProfilerHostDeinitialize)                                                                           \
  X(cuptiProfilerHostConfigAddMetrics)                                                                       \
  X(cuptiProfilerHostGetConfigImageSize)                                                                     \
  X(cuptiProfilerHostGetConfigImage)                                                                         \
  X(cuptiProfilerHostEvaluateToGpuValues)                                                                    \
  X(cuptiRangeProfilerEnable)                                                                                \
  X(cuptiRangeProfilerDisable)                                                                               \
  X(cuptiRangeProfilerSetConfig)                                                                             \
  X(cuptiRangeProfilerStart)                                                                                 \
  X(cuptiRangeProfilerStop)                                                                                  \
  X(cuptiRangeProfilerPushRange)                                                                             \
  X(cuptiRangeProfilerPopRange)                                                                              \
  X(cuptiRangeProfilerDecodeData)                                                                            \
  X(cuptiRangeProfilerGetCounterDataSize)                                                                    \
  X(cuptiRangeProfilerCounterDataImageInitialize)

typedef struct hn_dl_counters {
  HN_COUNTER_SYMBOLS(HN_DL_FIELD)
} hn_dl_counters;

#endif
