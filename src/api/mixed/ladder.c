/* Which types a unit may have: those that are faster than f32 beyond noise, and of two of them the wider one
 * where the narrower is not faster. */
#include "api/mixed/mixed.h"

void hn_mix_climb(hn_mix_unit *u, bool untimed) {
  u->rungs = u->rung = 0;
  for (int t = HONE_MIXED_TYPES - 1; t > HONE_MIXED_F32; t--) {
    bool worth = untimed || u->follows
                     ? t == HONE_MIXED_INT8
                     : u->timed[HONE_MIXED_F32] && u->timed[t] &&
                           hone_times_slower(u->ms[t], u->ms[HONE_MIXED_F32], HN_MIX_ROUNDS);
    for (int wider = HONE_MIXED_F16; wider < t && worth && !untimed && !u->follows; wider++)
      worth = !u->timed[wider] || u->median[wider] > u->median[t];
    if (worth) u->ladder[u->rungs++] = (hone_mixed_type)t;
  }
  u->ladder[u->rungs++] = HONE_MIXED_F32;
}

void hn_mix_climb_together(hn_mix_unit *u) {
  u->together = u->ladder[0] != HONE_MIXED_INT8;
  u->rung = 0;
  if (u->together) {
    u->ladder[0] = HONE_MIXED_INT8;
    u->ladder[1] = HONE_MIXED_F32;
    u->rungs = 2;
  }
}
