#include "runtime/devices.h"

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "base/error.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hn_backend *const backends[] = {&hn_backend_cpu, &hn_backend_cuda};

hone_status hn_backend_find(const char *name, const hn_backend **out, uint32_t *index, hone_error *error) {
  if (!name) name = "cpu";
  const size_t len = strcspn(name, ":");
  *out = NULL;
  *index = 0;
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (strlen(backends[i]->name) == len && strncmp(backends[i]->name, name, len) == 0) *out = backends[i];
  char *end = NULL;
  if (*out && name[len]) {
    unsigned long n = strtoul(name + len + 1, &end, 10);
    if (name[len + 1] < '0' || name[len + 1] > '9' || *end || n > 1023) *out = NULL;
    *index = (uint32_t)n;
  }
  if (*out) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "unknown device '%.64s'", name);
  hn_error_expected(error, "cpu, cuda or cuda:N");
  return HONE_ERROR_USAGE;
}

hn_registry *hn_tactic_registry(const char *device) {
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (device && strcmp(backends[i]->name, device) == 0) return backends[i]->tactics;
  return NULL;
}

/* In some device's list; one that this build does not have may have anything that is left out. */
static bool fits_any(const char *mask) {
  const char *glob = mask + (*mask == '-');
  bool fits = false;
  for (size_t i = 0; i < sizeof backends / sizeof *backends && !fits; i++) {
    if (!backends[i]->tactics) {
      fits = *mask == '-';
      continue;
    }
    const hn_listing *l = hn_registry_take(backends[i]->tactics);
    for (uint32_t k = 0; k < l->n && !fits; k++)
      fits = fnmatch(glob, ((const hone_tactic_desc *)l->unit[k])->name, 0) == 0;
    hn_listing_drop(l);
  }
  return fits;
}

hone_status hn_tactic_masks_check(const char *masks, const char *from, hone_error *error) {
  while (masks && *masks) {
    char mask[160];
    const size_t len = strcspn(masks, ",");
    snprintf(mask, sizeof mask, "%.*s", (int)(len < sizeof mask ? len : sizeof mask - 1), masks);
    if (len && (len >= sizeof mask || !fits_any(mask))) {
      hn_fail(error, HONE_ERROR_USAGE, "'%s' fits no tactic", mask);
      hn_error_where(error, "%s", from);
      hn_error_expected(error, "names of tactics or globs of them, with commas between; - leaves out");
      hn_error_hint(error, "hone plan MODEL shows which tactics a model's steps have");
      return HONE_ERROR_USAGE;
    }
    masks += len + (masks[len] == ',');
  }
  return HONE_OK;
}

static hn_registry *tactics_of(const hone_tactic_desc *t, hone_error *error) {
  hn_registry *r = hn_tactic_registry(t->device);
  if (r) return r;
  hn_fail(error, HONE_ERROR_USAGE, "tactic %.80s is for device '%.32s', which is not here", t->name,
          t->device ? t->device : "");
  hn_error_expected(error, "cpu or cuda");
  return NULL;
}

hone_status hn_tactic_add(const hone_tactic_desc *tactic, hone_error *error) {
  hn_registry *r = tactics_of(tactic, error);
  return r ? hn_registry_add(r, (const void *[]){tactic}, 1, error) : HONE_ERROR_USAGE;
}

hone_status hn_tactic_remove(const hone_tactic_desc *tactic, hone_error *error) {
  hn_registry *r = tactics_of(tactic, error);
  return r ? hn_registry_remove(r, (const void *[]){tactic}, 1, error) : HONE_ERROR_USAGE;
}
