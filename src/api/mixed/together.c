/* Whether layers that are not faster in 8 bits by themselves are so among the others. */
#include "api/mixed/mixed.h"

#include "base/error.h"

#include <string.h>

static hone_status open_choice(hn_mixing *m, hn_mix_side *side, hone_error *error) {
  hone_model *model = NULL;
  hone_status status = hn_mix_build(m, &model, error);
  if (status == HONE_OK) status = hn_mix_open(m, model, false, side, error);
  hone_model_release(model);
  return status;
}

static bool any_wide(const hn_mixing *m) {
  for (uint32_t u = 0; u < m->n_units; u++)
    if (m->unit[u].ladder[0] != HONE_MIXED_INT8) return true;
  return false;
}

hone_status hn_mix_try_together(hn_mixing *m, hone_error *error) {
  hn_mix_side each = {0}, together = {0};
  double ms[2][HN_MIX_ROUNDS];
  if (!any_wide(m)) return HONE_OK;
  hn_mix_unit *kept = hn_malloc(m->n_units * sizeof *kept);
  if (!kept) return hn_fail_memory(error, m->n_units * sizeof *kept, "units");
  memcpy(kept, m->unit, m->n_units * sizeof *kept);
  hone_status status = open_choice(m, &each, error);
  for (uint32_t u = 0; u < m->n_units; u++) hn_mix_climb_together(&m->unit[u]);
  if (status == HONE_OK) status = open_choice(m, &together, error);
  if (status == HONE_OK) status = hn_mix_turns(m, &together, &each, HN_MIX_ROUNDS, ms[0], ms[1], error);
  if (status == HONE_OK && !hone_times_slower(ms[0], ms[1], HN_MIX_ROUNDS))
    memcpy(m->unit, kept, m->n_units * sizeof *kept);
  hn_mix_close(&each);
  hn_mix_close(&together);
  hn_free(kept);
  return status;
}
