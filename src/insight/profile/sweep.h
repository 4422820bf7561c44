/* Whose time is it? One sweep over overlapping intervals gives every instant to exactly one category. */
#ifndef HN_INSIGHT_SWEEP_H
#define HN_INSIGHT_SWEEP_H

#include <hone/facts.h>

/* Result for one iteration, in nanoseconds. */
typedef struct hn_sweep {
  double covered; /* sum over all spans of their exclusive time */
  double gaps;    /* time in the window that no span covers */
  double longest_gap;
  const hone_span *after_longest_gap; /* NULL: the gap runs to the end of the window */
} hn_sweep;

/* Attributes the window [low, high] to `count` spans. exclusive[i] receives the wall time that belongs to
 * spans[i]:
 * - on one lane the innermost span (latest start) owns the time;
 * - between lanes the more useful kind owns it (computation hides copies, copies hide host work and waiting),
 * so a copy that overlaps a kernel costs nothing;
 * - between lanes with equally useful kinds it is divided evenly.
 * covered + gaps = high - low. RUN spans are containers and own nothing. HONE_ERROR_MEMORY when out of
 * memory. */
hone_status hn_sweep_run(const hone_span *const *spans, size_t count, int64_t low, int64_t high,
                         double *exclusive, hn_sweep *result, hone_error *error);

#endif
