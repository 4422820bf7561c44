/* What of a blob other steps and plans may read (hone_tactic_desc.shared).
 *
 * `shared` tells a multiple of 64, and so has bits to spare: with HN_SHARED_PACKED what is there follows from
 * the constants in hone_tactic_need.packed alone, not from all. Steps that differ in the others, as those of
 * an unrolled recurrence in codes do in their scales, then have it in common. With HN_SHARED_WHOLE all of the
 * blob says nothing of shapes, and the key tells how it is packed, too, so that other tactics may pack alike:
 * so do tactics of devices with memory of their own, where nothing is shared in part. */
#ifndef HN_OPTIMIZE_STEP_SHARED_H
#define HN_OPTIMIZE_STEP_SHARED_H

#include <hone/plugin.h>

enum { HN_SHARED_PACKED = 1, HN_SHARED_WHOLE = 2 };

/* As the tactic says it, with the flag as bit 0 of *key. 0: nothing. */
static inline size_t hn_tactic_shared(const hone_tactic_desc *tactic, const hone_step *step,
                                      const hone_machine *machine, uint64_t *key) {
  *key = 0;
  const size_t at = tactic->shared(step, machine, key);
  *key = *key << 1 | (at & HN_SHARED_PACKED);
  return at & ~(size_t)(HN_SHARED_PACKED | HN_SHARED_WHOLE);
}

/* Whether all of the blob is: then *key is set as above. */
static inline bool hn_tactic_shares_whole(const hone_tactic_desc *tactic, const hone_step *step,
                                          const hone_machine *machine, uint64_t *key) {
  *key = 0;
  const size_t at = tactic->shared(step, machine, key);
  *key = *key << 1 | HN_SHARED_PACKED;
  return at == (HN_SHARED_WHOLE | HN_SHARED_PACKED); /* no plugin's, which are multiples of 64 */
}

#endif
