/* Hardware counters of each piece of work, by CUPTI's range profiler: the pieces are done again as often as
 * the counters need passes, each within a range of its own. */
#include "backends/cuda/driver/counters.h"

#include "base/error.h"

#ifndef HN_HAVE_CUPTI
hone_status hn_cuda_counters(hn_device *d, uint32_t n, hn_counted_work work, void *arg, hn_counts *out,
                             hone_error *error) {
  (void)d, (void)n, (void)work, (void)arg, (void)out;
  return hn_fail(error, HONE_ERROR_MISSING, "this hone was built without CUPTI's headers");
}
#else
#include "backends/cuda/driver/dl_counters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const hn_dl_library library = HN_CUPTI_LIBRARY("hardware counters want CUPTI of CUDA 12.6 or newer");
#define HN_DL_TABLE hn_dl_counters
static const hn_dl_symbol symbols[] = {HN_COUNTER_SYMBOLS(HN_DL_SYMBOL)};

static hone_status load(hn_dl_counters *t, hone_error *error) {
  return hn_dl_load(&library, symbols, sizeof symbols / sizeof *symbols, t, NULL, 0, error);
}

/* What is asked for, each with its names on different chips and in different CUPTIs, best first. */
enum { NAMES = 3 };
static const char *const wanted[HN_COUNTS][NAMES] = {
    [HN_COUNT_COMPUTE] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_MEMORY] = {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                         "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_DRAM] = {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
                       "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_L2] = {"lts__throughput.avg.pct_of_peak_sustained_elapsed",
                     "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_L1] = {"l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
                     "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    [HN_COUNT_TENSOR] = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                         "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_L1_HIT] = {"l1tex__t_sector_hit_rate.pct"},
    [HN_COUNT_L2_HIT] = {"lts__t_sector_hit_rate.pct"},
    [HN_COUNT_OCCUPANCY] = {"sm__warps_active.avg.pct_of_peak_sustained_active"},
    [HN_COUNT_IPC] = {"sm__inst_executed.avg.per_cycle_elapsed", "sm__inst_executed.avg.per_cycle_active"},
    [HN_COUNT_ISSUE] = {"sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
                        "sm__inst_issued.avg.pct_of_peak_sustained_active",
                        "smsp__issue_active.avg.pct_of_peak_sustained_elapsed"},
    [HN_COUNT_BRANCH] = {"smsp__sass_average_branch_targets_threads_uniform.pct"},
    [HN_COUNT_THREADS] = {"smsp__thread_inst_executed_per_inst_executed.ratio"},
};

typedef struct counting {
  hn_dl_counters cu;
  hn_device *device;
  const char *chip;
  uint8_t *available, *config, *data;
  size_t available_size, config_size, data_size;
  CUpti_Profiler_Host_Object *host;
  CUpti_RangeProfiler_Object *ranges;
  int most;                      /* so many of `wanted` are asked for */
  const char *metric[HN_COUNTS]; /* those of `wanted` that this chip has */
  int count[HN_COUNTS];          /* which they are */
  size_t n_metrics;
} counting;

static hone_status check(counting *c, CUptiResult r, const char *call, hone_error *error) {
  const char *text = NULL;
  if (r == CUPTI_SUCCESS) return HONE_OK;
  c->cu.cuptiGetResultString(r, &text);
  hn_fail(error, HONE_ERROR_MISSING, "CUPTI refuses: %s: %s", call, text ? text : "an unknown error");
  if (r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || r == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
    hn_error_hint(error, "counters are allowed to root, or to all with the driver's option "
                         "NVreg_RestrictProfilingToAdminUsers=0");
  return HONE_ERROR_MISSING;
}
#define CU(c, error, call, params) check((c), (c)->cu.call(params), #call, (error))

static hone_status open_host(counting *c, CUpti_Profiler_Host_Object **out, hone_error *error) {
  hn_host_initialize p = {
      .structSize = sizeof p, .pChipName = c->chip, .pCounterAvailabilityImage = c->available};
  hone_status status = CU(c, error, cuptiProfilerHostInitialize, &p);
  *out = status == HONE_OK ? p.pHostObject : NULL;
  return status;
}

static void close_host(counting *c, CUpti_Profiler_Host_Object *host) {
  if (host) c->cu.cuptiProfilerHostDeinitialize(&(hn_host_object){sizeof(hn_host_object), NULL, host});
}

/* Which of the metrics this chip has; a host object that refused one is not used further. */
static hone_status find_metrics(counting *c, hone_error *error) {
  for (int i = 0; i < c->most; i++)
    for (int k = 0; k < NAMES && wanted[i][k]; k++) {
      CUpti_Profiler_Host_Object *trial;
      hone_status status = open_host(c, &trial, error);
      if (status != HONE_OK) return status;
      const char *name = wanted[i][k];
      hn_host_metrics p = {sizeof p, NULL, trial, &name, 1};
      const bool has = c->cu.cuptiProfilerHostConfigAddMetrics(&p) == CUPTI_SUCCESS;
      close_host(c, trial);
      if (!has) continue;
      c->metric[c->n_metrics] = name;
      c->count[c->n_metrics++] = i;
      break;
    }
  return c->n_metrics ? HONE_OK
                      : hn_fail(error, HONE_ERROR_MISSING, "CUPTI knows none of the counters on %s", c->chip);
}

static hone_status prepare(counting *c, uint32_t n, hone_error *error) {
  CUpti_Profiler_Initialize_Params init = {.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE,
                                          .deviceIndex = c->device->index};
  CUpti_Profiler_GetCounterAvailability_Params can = {
      .structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE, .ctx = c->device->context};
  hone_status status = CU(c, error, cuptiProfilerInitialize, &init);
  if (status == HONE_OK) status = CU(c, error, cuptiDeviceGetChipName, &chip);
  c->chip = chip.pChipName;
  if (status == HONE_OK) status = CU(c, error, cuptiProfilerGetCounterAvailability, &can);
  if (status != HONE_OK) return status;
  c->available = hn_calloc(can.counterAvailabilityImageSize, 1);
  if (!c->available) return hn_fail_memory(error, can.counterAvailabilityImageSize, "counters");
  can.pCounterAvailabilityImage = c->available;
  status = CU(c, error, cuptiProfilerGetCounterAvailability, &can);
  if (status == HONE_OK) status = find_metrics(c, error);
  if (status == HONE_OK) status = open_host(c, &c->host, error);
  if (status != HONE_OK) return status;
  hn_host_metrics metrics = {sizeof metrics, NULL, c->host, c->metric, c->n_metrics};
  hn_host_config_size size = {sizeof size, NULL, c->host, 0};
  status = CU(c, error, cuptiProfilerHostConfigAddMetrics, &metrics);
  if (status == HONE_OK) status = CU(c, error, cuptiProfilerHostGetConfigImageSize, &size);
  if (status != HONE_OK) return status;
  c->config_size = size.configImageSize;
  c->config = hn_calloc(c->config_size, 1);
  if (!c->config) return hn_fail_memory(error, c->config_size, "counters");
  hn_host_config config = {sizeof config, NULL, c->host, c->config_size, c->config};
  status = CU(c, error, cuptiProfilerHostGetConfigImage, &config);
  CUpti_RangeProfiler_Enable_Params enable = {.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE,
                                              .ctx = c->device->context};
  if (status == HONE_OK) status = CU(c, error, cuptiRangeProfilerEnable, &enable);
  if (status != HONE_OK) return status;
  c->ranges = enable.pRangeProfilerObject;
  CUpti_RangeProfiler_GetCounterDataSize_Params data = {
      .structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
      .pRangeProfilerObject = c->ranges,
      .pMetricNames = c->metric,
      .numMetrics = c->n_metrics,
      .maxNumOfRanges = n,
      .maxNumRangeTreeNodes = n};
  status = CU(c, error, cuptiRangeProfilerGetCounterDataSize, &data);
  if (status != HONE_OK) return status;
  c->data_size = data.counterDataSize;
  c->data = hn_calloc(c->data_size, 1);
  if (!c->data) return hn_fail_memory(error, c->data_size, "counters");
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params image = {
      .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
      .pRangeProfilerObject = c->ranges,
      .counterDataSize = c->data_size,
      .pCounterData = c->data};
  status = CU(c, error, cuptiRangeProfilerCounterDataImageInitialize, &image);
  CUpti_RangeProfiler_SetConfig_Params set = {.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
                                              .pRangeProfilerObject = c->ranges,
                                              .configSize = c->config_size,
                                              .pConfig = c->config,
                                              .counterDataImageSize = c->data_size,
                                              .pCounterDataImage = c->data,
                                              .range = CUPTI_UserRange,
                                              .replayMode = CUPTI_UserReplay,
                                              .maxRangesPerPass = n,
                                              .numNestingLevels = 1,
                                              .minNestingLevel = 1};
  return status == HONE_OK ? CU(c, error, cuptiRangeProfilerSetConfig, &set) : status;
}

static hone_status one_pass(counting *c, uint32_t n, hn_counted_work work, void *arg, bool *done,
                            hone_error *error) {
  CUpti_RangeProfiler_Start_Params start = {.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
                                            .pRangeProfilerObject = c->ranges};
  CUpti_RangeProfiler_Stop_Params stop = {.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE,
                                          .pRangeProfilerObject = c->ranges};
  hone_status status = CU(c, error, cuptiRangeProfilerStart, &start);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u", i);
    CUpti_RangeProfiler_PushRange_Params push = {.structSize =
                                                     CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
                                                 .pRangeProfilerObject = c->ranges,
                                                 .pRangeName = name};
    CUpti_RangeProfiler_PopRange_Params pop = {.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
                                               .pRangeProfilerObject = c->ranges};
    status = CU(c, error, cuptiRangeProfilerPushRange, &push);
    if (status == HONE_OK) status = work(arg, i, error);
    hone_error other = {0};
    hone_status popped = CU(c, status == HONE_OK ? error : &other, cuptiRangeProfilerPopRange, &pop);
    if (status == HONE_OK) status = popped;
  }
  hone_error other = {0};
  hone_status stopped = CU(c, status == HONE_OK ? error : &other, cuptiRangeProfilerStop, &stop);
  *done = stop.isAllPassSubmitted;
  return status == HONE_OK ? stopped : status;
}

static hone_status evaluate(counting *c, uint32_t n, hn_counts *out, hone_error *error) {
  CUpti_RangeProfiler_DecodeData_Params decode = {
      .structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE, .pRangeProfilerObject = c->ranges};
  hone_status status = CU(c, error, cuptiRangeProfilerDecodeData, &decode);
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    double value[HN_COUNTS] = {0};
    hn_host_evaluate p = {sizeof p, NULL, c->host, c->data, c->data_size, i, c->metric, c->n_metrics, value};
    status = CU(c, error, cuptiProfilerHostEvaluateToGpuValues, &p);
    for (int k = 0; k < HN_COUNTS; k++) out[i].value[k] = NAN;
    for (size_t k = 0; k < c->n_metrics; k++) out[i].value[c->count[k]] = value[k];
  }
  return status;
}

/* With the first `most` of the counters. */
static hone_status attempt(hn_device *d, int most, uint32_t n, hn_counted_work work, void *arg,
                           hn_counts *out, hone_error *error) {
  enum { MOST_PASSES = 128 };
  counting c = {.device = d, .most = most};
  bool done = false;
  hone_status status = load(&c.cu, error);
  if (status != HONE_OK) return status;
  status = prepare(&c, n, error);
  for (int pass = 0; pass < MOST_PASSES && !done && status == HONE_OK; pass++)
    status = one_pass(&c, n, work, arg, &done, error);
  if (status == HONE_OK && !done)
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "the counters want more than %d passes", MOST_PASSES);
  if (status == HONE_OK) status = evaluate(&c, n, out, error);
  if (c.ranges)
    c.cu.cuptiRangeProfilerDisable(&(CUpti_RangeProfiler_Disable_Params){
        .structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE, .pRangeProfilerObject = c.ranges});
  close_host(&c, c.host);
  hn_free(c.available);
  hn_free(c.config);
  hn_free(c.data);
  return status;
}

hone_status hn_cuda_counters(hn_device *d, uint32_t n, hn_counted_work work, void *arg, hn_counts *out,
                             hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK) status = attempt(d, HN_COUNTS, n, work, arg, out, error);
  /* A chip may have each of the counters and yet not all of them together. */
  hone_error other = {0};
  if (status != HONE_OK && attempt(d, HN_COUNTS_OF_BOUNDS, n, work, arg, out, &other) == HONE_OK) {
    if (error) *error = (hone_error){0};
    status = HONE_OK;
  }
  return status;
}
#endif
