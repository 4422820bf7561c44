/* A CUPTI without a GPU: the test says which nodes are made and what was done when, and this hands it to hone
 * as CUPTI would. Its clock is the host's plus FAKE_CUPTI_AHEAD nanoseconds. */
#include <cupti.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/fake_cupti.h"

static CUpti_CallbackFunc on_resource;
static void *user;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct {
  union {
    CUpti_Activity head;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
  } record;
  size_t size;
} waiting[64];
static size_t count;
static int refused;

#define OUT __attribute__((visibility("default")))

OUT void fake_cupti_refuse(int yes) { refused = yes; }

OUT CUptiResult cuptiGetVersion(uint32_t *v) {
  *v = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiGetResultString(CUptiResult r, const char **s) {
  *s = r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR";
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiGetTimestamp(uint64_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *t = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + FAKE_CUPTI_AHEAD;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *arg) {
  if (refused) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  *s = (CUpti_SubscriberHandle)&on_resource;
  on_resource = f;
  user = arg;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle s) {
  (void)s;
  on_resource = NULL;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain d,
                                    CUpti_CallbackId id) {
  (void)on, (void)s, (void)d, (void)id;
  return CUPTI_SUCCESS;
}
/* Nodes of the test are their own ids. */
OUT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id) {
  *id = (uint64_t)(uintptr_t)node;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiGetStreamIdEx(CUcontext c, CUstream s, uint8_t per_thread, uint32_t *id) {
  (void)c, (void)per_thread;
  *id = (uint32_t)(uintptr_t)s;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                               CUpti_BuffersCallbackCompleteFunc c) {
  request = r;
  complete = c;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiActivityEnable(CUpti_ActivityKind k) { return (void)k, CUPTI_SUCCESS; }
OUT CUptiResult cuptiActivityDisable(CUpti_ActivityKind k) { return (void)k, CUPTI_SUCCESS; }
OUT CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind k, uint64_t id) {
  return (void)k, (void)id, CUPTI_SUCCESS;
}
OUT CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind k, uint64_t *id) {
  return (void)k, *id = 0, CUPTI_SUCCESS;
}
OUT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext c, uint32_t s, size_t *n) {
  return (void)c, (void)s, *n = 0, CUPTI_SUCCESS;
}

/* A buffer is an array of indices into `waiting`. */
OUT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
  uint8_t *at = *record ? NULL : buffer;
  for (size_t i = 0; *record && i < valid; i++)
    if (&waiting[buffer[i]].record.head == *record && i + 1 < valid) at = &buffer[i + 1];
  if (!at) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = &waiting[*at].record.head;
  return CUPTI_SUCCESS;
}
OUT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  uint8_t *buffer = NULL;
  size_t size = 0, most = 0;
  (void)flag;
  if (!count) return CUPTI_SUCCESS;
  request(&buffer, &size, &most);
  for (size_t i = 0; i < count; i++) buffer[i] = (uint8_t)i;
  complete(NULL, 0, buffer, size, count);
  count = 0;
  return CUPTI_SUCCESS;
}

static void tell(CUpti_CallbackId id, uintptr_t node, uintptr_t original) {
  CUpti_GraphData graph = {.node = (CUgraphNode)node, .originalNode = (CUgraphNode)original};
  CUpti_ResourceData data = {.resourceDescriptor = &graph};
  if (on_resource) on_resource(user, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}
OUT void fake_cupti_created(uintptr_t node) { tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0); }
OUT void fake_cupti_cloned(uintptr_t node, uintptr_t original) {
  tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, original);
}
OUT void fake_cupti_kernel(const char *name, int64_t start, int64_t end, uint64_t node) {
  memset(&waiting[count], 0, sizeof waiting[count]);
  waiting[count++].record.kernel = (CUpti_ActivityKernel10){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                            .start = (uint64_t)(start + FAKE_CUPTI_AHEAD),
                                                            .end = (uint64_t)(end + FAKE_CUPTI_AHEAD),
                                                            .name = name,
                                                            .graphNodeId = node};
}
OUT void fake_cupti_copy(int64_t start, int64_t end, void *stream, uint64_t bytes) {
  memset(&waiting[count], 0, sizeof waiting[count]);
  waiting[count++].record.copy = (CUpti_ActivityMemcpy6){.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                                         .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                                                         .start = (uint64_t)(start + FAKE_CUPTI_AHEAD),
                                                         .end = (uint64_t)(end + FAKE_CUPTI_AHEAD),
                                                         .streamId = (uint32_t)(uintptr_t)stream,
                                                         .bytes = bytes};
}
