#include "optimize/step/work.h"

static const char *const arithmetic_names[] = {
#define X(id, word) word,
    HONE_ARITHMETICS(X)
#undef X
};

const char *hn_arithmetic_name(hone_arithmetic arithmetic) {
  return (unsigned)arithmetic < sizeof arithmetic_names / sizeof *arithmetic_names
             ? arithmetic_names[arithmetic]
             : "unknown";
}

hone_work hn_tactic_work(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine) {
  hone_work w = {.flops = step->cost.flops};
  if (tactic && tactic->work) tactic->work(step, machine, &w);
  return w;
}
