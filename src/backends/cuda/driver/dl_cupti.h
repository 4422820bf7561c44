/* CUPTI, the profiling interface: activity records and callbacks. */
#ifndef HN_CUDA_DRIVER_DL_CUPTI_H
#define HN_CUDA_DRIVER_DL_CUPTI_H

#include "backends/cuda/driver/dl.h"

#include <cupti.h>

#define HN_CUPTI_SYMBOLS(X)                                                                                  \
  X(cuptiGetVersion)                                                                                         \
  X(cuptiGetResultString)                                                                                    \
  X(cuptiGetTimestamp)                                                                                       \
  X(cuptiSubscribe)                                                                                          \
  X(cuptiUnsubscribe)                                                                                        \
  X(cuptiEnableCallback)                                                                                     \
  X(cuptiGetGraphNodeId)                                                                                     \
  X(cuptiGetStreamIdEx)                                                                                      \
  X(cuptiActivityRegisterCallbacks)                                                                          \
  X(cuptiActivityEnable)                                                                                     \
  X(cuptiActivityDisable)                                                                                    \
  X(cuptiActivityFlushAll)                                                                                   \
  X(cuptiActivityGetNextRecord)                                                                              \
  X(cuptiActivityGetNumDroppedRecords)                                                                       \
  X(cuptiActivityPushExternalCorrelationId)                                                                  \
  X(cuptiActivityPopExternalCorrelationId)

typedef struct hn_dl_cupti {
  HN_CUPTI_SYMBOLS(HN_DL_FIELD)
} hn_dl_cupti;

hone_status hn_dl_cupti_load(hn_dl_cupti *table, char *path, size_t size, hone_error *error);

#endif
