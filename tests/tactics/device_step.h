/* One step on an accelerator, as plans run it: prepared, captured, launched as a segment. */
#ifndef HN_TESTS_DEVICE_STEP_H
#define HN_TESTS_DEVICE_STEP_H

#include "optimize/step/backend.h"

#include <stdbool.h>

typedef struct device_place {
  const hn_backend *backend;
  hn_device *device;
  hn_queue *queue;
} device_place;

/* HONE_ERROR_MISSING: there is no such device. */
hone_status device_open(device_place *p, const char *name, hone_error *error);
void device_close(device_place *p);

/* Whether a list of tactics has this one, as HONE_TACTICS says it: names, or beginnings with a star; a minus
 * leaves out, and the last that fits decides. NULL has all. */
bool device_wants(const char *list, const char *tactic);

hone_status device_run_segment(const device_place *p, const hone_tactic_desc *t, hone_step_run *run,
                               hone_error *error);

/* The whole of it from and to the host's memory; what is not written comes back as NaN. in_place: output 0
 * lies where input 0 lies. */
hone_status device_run_step(const device_place *p, const hone_tactic_desc *t, const hone_step *step,
                            const void *const in[], void *const out[], bool in_place, hone_error *error);

#endif
