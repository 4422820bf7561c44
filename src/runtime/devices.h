/* Which backends there are, and devices by name. */
#ifndef HN_RUNTIME_DEVICES_H
#define HN_RUNTIME_DEVICES_H

#include "optimize/step/backend.h"

/* The backend of "cpu", "cuda" or "cuda:1" (NULL: the CPU) and the device's number. Of a backend that was
 * not built only open and about are there, and say so. */
hone_status hn_backend_find(const char *name, const hn_backend **out, uint32_t *index, hone_error *error);

/* The tactics of "cpu" or "cuda"; NULL: there is no such device in this build. */
hn_registry *hn_tactic_registry(const char *device);
/* Masks as a plan takes them ("conv_*,-*_winograd*", NULL: none), each for tactics that there are, on
 * whatever device: one that is misspelt would leave in, or out, what nobody meant. HONE_ERROR_USAGE names it;
 * `from` is where it stands. */
hone_status hn_tactic_masks_check(const char *masks, const char *from, hone_error *error);
/* Adds a tactic to those of its device, and takes it away: as hn_registry_add and hn_registry_remove. Plans
 * that were made with it keep it. HONE_ERROR_USAGE: there is no such device, too. */
hone_status hn_tactic_add(const hone_tactic_desc *tactic, hone_error *error);
hone_status hn_tactic_remove(const hone_tactic_desc *tactic, hone_error *error);

#endif
