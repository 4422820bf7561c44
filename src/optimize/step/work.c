#include "optimize/step/work.h"

#include "base/names.h"

HN_NAME_FUNCTION(hn_arithmetic_name, hone_arithmetic, HONE_ARITHMETICS)

hone_work hn_tactic_work(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine) {
  hone_work w = {.flops = step->cost.flops};
  if (tactic && tactic->work) tactic->work(step, machine, &w);
  return w;
}
