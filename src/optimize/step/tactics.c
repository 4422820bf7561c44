#include "optimize/step/tactics.h"

#include "base/error.h"
#include "base/fault.h"

#include <stdio.h>
#include <string.h>

static const char *tactic_key(const void *unit) { return ((const hone_tactic_desc *)unit)->anchor; }

static void tactic_label(const void *unit, char *buf, size_t size) {
  snprintf(buf, size, "%s", ((const hone_tactic_desc *)unit)->name);
}

static hone_status tactic_check(const void *unit, hone_error *error) {
  const hone_tactic_desc *t = unit;
  const hone_status status = hn_check_desc("tactic", t->name, t->struct_size, t->abi, sizeof *t, error);
  if (status != HONE_OK) return status;
  if (t->name && *t->name && t->device && t->anchor && t->accepts && t->run) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "tactic %.80s is not whole", t->name ? t->name : "?");
  hn_error_expected(error, "a name, a device, an anchor, accepts and run");
  return HONE_ERROR_USAGE;
}

const hn_kind hn_tactic_kind = {
    .noun = "tactic", .key = tactic_key, .label = tactic_label, .check = tactic_check};

const hone_tactic_desc *hn_tactic_find(const hn_listing *tactics, const char *name, int32_t version) {
  for (uint32_t i = 0; i < tactics->n; i++) {
    const hone_tactic_desc *t = tactics->unit[i];
    if (t->version == version && strcmp(t->name, name) == 0) return t;
  }
  return NULL;
}

hone_status hn_tactic_pack(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine,
                           void *blob, size_t bytes, hone_error *error) {
  if (bytes && !HN_FAULT("blob_left_dirty")) memset(blob, 0, bytes);
  return tactic->prepack ? tactic->prepack(step, machine, blob, error) : HONE_OK;
}
