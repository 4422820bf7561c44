/* Public engine functions: arguments are checked here and nowhere below. */
#include "api/api.h"
#include "api/objects.h"
#include "base/error.h"
#include "runtime/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_status hone_device_about(const char *device, hone_device_info *info, hone_error *error) {
  const hn_backend *backend;
  uint32_t index;
  if (info) memset(info, 0, sizeof *info);
  hone_status status = hn_backend_find(device, &backend, &index, error);
  return status == HONE_OK && backend->about ? backend->about(index, info, error) : status;
}

hone_status hone_device_sensors(const char *device, hone_sensors *out, hone_error *error) {
  const hn_backend *backend;
  hn_device *d = NULL;
  uint32_t index;
  hn_sensor s[sizeof out->sensor / sizeof *out->sensor];
  size_t n = 0;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_device_sensors needs a place for the result");
  out->count = 0;
  hone_status status = hn_backend_find(device, &backend, &index, error);
  if (status == HONE_OK && !backend->sensors)
    return hn_fail(error, HONE_ERROR_MISSING, "device %s has no sensors", backend->name);
  if (status == HONE_OK) status = backend->open(index, 1, NULL, &d, error);
  if (status == HONE_OK) status = backend->sensors(d, s, sizeof s / sizeof *s, &n, error);
  for (size_t i = 0; status == HONE_OK && i < n; i++) {
    hone_sensor *to = &out->sensor[out->count++];
    snprintf(to->name, sizeof to->name, "%s", s[i].name);
    snprintf(to->unit, sizeof to->unit, "%s", s[i].unit);
    to->value = s[i].value;
  }
  if (d) backend->close(d);
  return status;
}

hone_status hone_engine_create(const hone_engine_options *o, hone_engine **out, hone_error *error) {
  static const hone_engine_options none = {0};
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_engine_create needs a place for the result");
  *out = NULL;
  if (!o) o = &none;
  const hn_backend *backend;
  uint32_t index;
  hone_status status = hn_backend_find(o->device, &backend, &index, error);
  if (status != HONE_OK) return status;
  const uint64_t lost = hn_mem_lost();
  hone_engine *e = hn_calloc(1, sizeof *e);
  if (!e) return hn_fail_memory(error, sizeof *e, "the engine");
  e->backend = backend;
  const char *masks = o->tactics ? o->tactics : getenv("HONE_TACTICS");
  status = hn_tactic_masks_check(masks, o->tactics ? "the engine's tactics" : "HONE_TACTICS", error);
  if (status == HONE_OK && masks && !(e->tactics = hn_strdup(masks)))
    status = hn_fail_memory(error, strlen(masks), "the engine");
  if (status == HONE_OK) status = backend->open(index, o->threads, o->isa, &e->device, error);
  if (status == HONE_OK) {
    e->tuned = hn_tuned_open(backend, e->device, o->tuning, &e->tuned_source);
    if (!e->tuned) status = hn_fail_memory(error, 0, "the engine");
  }
  status = hn_settle(status, lost, error);
  if (status == HONE_OK)
    *out = e;
  else
    hone_engine_destroy(e);
  return status;
}

void hone_engine_destroy(hone_engine *e) {
  if (!e) return;
  if (e->device) e->backend->close(e->device);
  hn_tuned_destroy(e->tuned);
  hn_free(e->tactics);
  hn_free(e);
}

uint64_t hone_engine_device_peak(const hone_engine *e) {
  return e ? hn_device_peak(e->backend, e->device) : 0;
}

void hone_engine_warnings(hone_engine *e, char *buf, size_t size) {
  if (!buf) return;
  if (size) buf[0] = 0;
  if (e && e->backend->warnings) e->backend->warnings(e->device, buf, size);
}

uint32_t hone_engine_tuned(const hone_engine *e, const char **file, const char **warning) {
  if (file) *file = e ? e->tuned_source.path : "";
  if (warning) *warning = e ? e->tuned_source.warning : "";
  return e ? (uint32_t)hn_tuned_count(e->tuned) : 0;
}

const hn_backend *hn_api_backend(const hone_engine *e, hn_device **device) {
  *device = e->device;
  return e->backend;
}

const hone_machine *hone_engine_machine(const hone_engine *e) {
  return e ? e->backend->machine(e->device) : NULL;
}
