/* What a step's tactic really computes. */
#ifndef HN_OPTIMIZE_STEP_WORK_H
#define HN_OPTIMIZE_STEP_WORK_H

#include <hone/plugin.h>

/* What a tactic computes for a step that it accepts (NULL: the reference). */
hone_work hn_tactic_work(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine);
/* Types of what a step multiplies and of what it adds up, and of what it leaves in memory. */
typedef struct hn_arithmetic_types {
  hone_dtype operand, sum, storage;
} hn_arithmetic_types;
hn_arithmetic_types hn_arithmetic_types_of(const hone_step *step, const hone_work *work);
/* "tf32"; "" for what the step's element type says. */
const char *hn_arithmetic_name(hone_arithmetic arithmetic);

#endif
