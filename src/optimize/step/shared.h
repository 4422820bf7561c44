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

typedef enum hn_sharing {
  HN_SHARES_NOTHING,
  HN_SHARES_PART, /* from some byte on */
  HN_SHARES_WHOLE
} hn_sharing;

/* As the tactic says it, with the flag as bit 0 of *key. *at: from which byte on, where it is a part; else 0.
 */
static inline hn_sharing hn_tactic_shares(const hone_tactic_desc *tactic, const hone_step *step,
                                          const hone_machine *machine, size_t *at, uint64_t *key) {
  *at = 0, *key = 0;
  if (!tactic->shared) return HN_SHARES_NOTHING;
  const size_t told = tactic->shared(step, machine, key);
  *key = *key << 1 | (told & HN_SHARED_PACKED);
  *at = told & ~(size_t)(HN_SHARED_PACKED | HN_SHARED_WHOLE);
  if (*at) return HN_SHARES_PART;
  return told & HN_SHARED_WHOLE ? HN_SHARES_WHOLE : HN_SHARES_NOTHING;
}

#endif
