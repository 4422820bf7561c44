/* The backend's tactics. */
#ifndef HN_CPU_TACTICS_H
#define HN_CPU_TACTICS_H

#include "optimize/step/tactics.h"

/* Begins with tactics.def. */
extern hn_registry hn_cpu_tactics;

#define TACTIC(NAME) extern const hone_tactic_desc hn_cpu_tactic_##NAME;
#define TACTIC_OF(NAME, ...) TACTIC(NAME)
#include "backends/cpu/tactics.def"
#undef TACTIC
#undef TACTIC_OF

#endif
