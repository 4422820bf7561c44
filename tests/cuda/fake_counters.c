/* The range profiler of the fake CUPTI: metrics and their values by range come from the environment,
 *     HONE_FAKE_METRICS="sm__throughput.avg...=85,12;lts__t_sector_hit_rate.pct=40"
 * (a value a range, the last one for all that follow; "nan" is one, too). Metrics that are not named are
 * unknown to this chip, "refuse" in place of the list refuses all counters. Two passes are wanted; the calls
 * must come in CUPTI's order, or they fail. */
#include "backends/cuda/driver/dl_counters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT __attribute__((visibility("default")))

enum { PASSES = 2, MOST_RANGES = 4096 };

static struct {
  bool enabled, configured, started, in_range, decoded;
  size_t most_ranges, ranges, passes; /* ranges: of the pass in progress, or of the last one */
} now;

/* Where the values of a metric begin; NULL: unknown. */
static const char *values_of(const char *metric) {
  const char *list = getenv("HONE_FAKE_METRICS");
  const size_t n = strlen(metric);
  for (const char *p = list; p && *p; p = strchr(p, ';') ? strchr(p, ';') + 1 : NULL)
    if (strncmp(p, metric, n) == 0 && p[n] == '=') return p + n + 1;
  return NULL;
}

static double value_of(const char *metric, size_t range) {
  const char *p = values_of(metric);
  double v = strtod(p, NULL);
  for (size_t i = 0; i < range; i++) {
    p += strcspn(p, ",;");
    if (*p != ',') break;
    v = strtod(++p, NULL);
  }
  return v;
}

static bool refused(void) {
  const char *list = getenv("HONE_FAKE_METRICS");
  return !list || strcmp(list, "refuse") == 0;
}

OUT CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p) {
  (void)p;
  return refused() ? CUPTI_ERROR_INSUFFICIENT_PRIVILEGES : CUPTI_SUCCESS;
}
OUT CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p) {
  p->pChipName = "FAKE100";
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p) {
  p->counterAvailabilityImageSize = 8;
  if (p->pCounterAvailabilityImage) memset(p->pCounterAvailabilityImage, 1, 8);
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerHostInitialize(hn_host_initialize *p) {
  p->pHostObject = malloc(1);
  return p->pHostObject ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}
OUT CUptiResult cuptiProfilerHostDeinitialize(hn_host_object *p) {
  free(p->pHostObject);
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerHostConfigAddMetrics(hn_host_metrics *p) {
  for (size_t i = 0; i < p->numMetrics; i++)
    if (!values_of(p->ppMetricNames[i])) return CUPTI_ERROR_INVALID_METRIC_NAME;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerHostGetConfigImageSize(hn_host_config_size *p) {
  p->configImageSize = 16;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerHostGetConfigImage(hn_host_config *p) {
  memset(p->pConfigImage, 2, p->configImageSize);
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiProfilerHostEvaluateToGpuValues(hn_host_evaluate *p) {
  if (!now.decoded || p->rangeIndex >= now.ranges) return CUPTI_ERROR_INVALID_PARAMETER;
  for (size_t i = 0; i < p->numMetrics; i++)
    p->pMetricValues[i] = value_of(p->ppMetricNames[i], p->rangeIndex);
  return CUPTI_SUCCESS;
}

OUT CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p) {
  if (now.enabled) return CUPTI_ERROR_INVALID_OPERATION;
  memset(&now, 0, sizeof now);
  now.enabled = true;
  p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&now;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p) {
  (void)p;
  now.enabled = false;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p) {
  if (!now.enabled || p->range != CUPTI_UserRange || p->replayMode != CUPTI_UserReplay)
    return CUPTI_ERROR_INVALID_PARAMETER;
  now.most_ranges = p->maxRangesPerPass;
  now.configured = true;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p) {
  (void)p;
  if (!now.configured || now.started) return CUPTI_ERROR_INVALID_OPERATION;
  now.started = true;
  now.ranges = 0;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p) {
  if (!now.started || now.in_range) return CUPTI_ERROR_INVALID_OPERATION;
  now.started = false;
  p->isAllPassSubmitted = ++now.passes == PASSES;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *p) {
  if (!now.started || now.in_range || now.ranges >= now.most_ranges || !p->pRangeName)
    return CUPTI_ERROR_INVALID_OPERATION;
  now.in_range = true;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *p) {
  (void)p;
  if (!now.in_range) return CUPTI_ERROR_INVALID_OPERATION;
  now.in_range = false;
  now.ranges++;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p) {
  if (now.passes != PASSES || now.started) return CUPTI_ERROR_INVALID_OPERATION;
  now.decoded = true;
  p->numOfRangeDropped = 0;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p) {
  if (p->maxNumOfRanges > MOST_RANGES) return CUPTI_ERROR_INVALID_PARAMETER;
  p->counterDataSize = 64 * (p->maxNumOfRanges + 1);
  return CUPTI_SUCCESS;
}
OUT CUptiResult
cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p) {
  memset(p->pCounterData, 0, p->counterDataSize);
  return CUPTI_SUCCESS;
}
