/* Registries of tactics: each backend has one (hn_backend.tactics). */
#ifndef HN_OPTIMIZE_STEP_TACTICS_H
#define HN_OPTIMIZE_STEP_TACTICS_H

#include "base/registry.h"

#include <hone/plugin.h>

/* Of hone_tactic_desc, by anchor; no two have one name. */
extern const hn_kind hn_tactic_kind;

/* The one of that name and version, or NULL. */
const hone_tactic_desc *hn_tactic_find(const hn_listing *tactics, const char *name, int32_t version);

#endif
