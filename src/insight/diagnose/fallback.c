#include "insight/diagnose/fallback.h"

const char *hn_fallback_cause(hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = 0; step && i < step->alternative_count; i++) {
    const hone_alternative *a = &step->alternatives[i];
    if (a->reason)
      return HN_SAY(d, "No fast tactic accepts them. For '%s', %s says: %s.",
                    "没有快速实现接受它们。对 '%s'，%s 的说法是：%s。", l->name,
                    a->tactic ? a->tactic : HN_WORDS(d, "a tactic", "某个实现"), a->reason);
  }
  return HN_SAY(d, "No fast tactic accepts them; '%s' (%s) is the slowest.",
                "没有快速实现接受它们；最慢的是 '%s'（%s）。", l->name, l->type);
}
