/* Registries of tactics: each backend has one (hn_backend.tactics). */
#ifndef HN_OPTIMIZE_STEP_TACTICS_H
#define HN_OPTIMIZE_STEP_TACTICS_H

#include "base/registry.h"

#include <hone/plugin.h>

/* Of hone_tactic_desc, by anchor; no two have one name. */
extern const hn_kind hn_tactic_kind;

/* The one of that name and version, or NULL. */
const hone_tactic_desc *hn_tactic_find(const hn_listing *tactics, const char *name, int32_t version);

/* Packs, after the first `bytes` of the blob were cleared: what a tactic leaves between its parts is 0, on
 * which those of devices rely, and in a saved plan it would show what this process had in its memory. 0: the
 * blob came zeroed. */
hone_status hn_tactic_pack(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine,
                           void *blob, size_t bytes, hone_error *error);

#endif
