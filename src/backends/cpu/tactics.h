/* The list of tactics.def. */
#ifndef HN_CPU_TACTICS_H
#define HN_CPU_TACTICS_H

#include <hone/plugin.h>

const hone_tactic_desc *const *hn_cpu_tactics(size_t *count);

#define TACTIC(NAME) extern const hone_tactic_desc hn_cpu_tactic_##NAME;
#define TACTIC_OF(NAME, ...) TACTIC(NAME)
#include "backends/cpu/tactics.def"
#undef TACTIC
#undef TACTIC_OF

#endif
