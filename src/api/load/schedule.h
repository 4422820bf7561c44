/* Which samples are asked for, and when: what LoadGen draws in its performance mode from the same seeds.
 *
 *   set     0 .. samples - 1, shuffled by the first generator
 *   before the first query the generator of samples shuffles two lists that only other modes use:
 * ceil(samples / stride) items (stride: samples of a query of the multi stream, else 1), and ceil(min_queries
 * / m) times m items (m: samples, of the multi stream samples + query_samples - 1) query   single, server:
 * set[below(samples)]; multi: query_samples of the set from there on, round and round; offline: the set again
 * and again, one query when    server: the first at 0, the next by exponential(qps) seconds later, cut to
 * whole ns. There is another one while the last is before min_duration_ns or there are fewer than min_queries
 */
#ifndef HN_API_LOAD_SCHEDULE_H
#define HN_API_LOAD_SCHEDULE_H

#include "base/mersenne.h"

#include <hone/load.h>

typedef struct hn_schedule {
  const hone_load_settings *s; /* borrowed */
  hn_mt samples, arrivals;
  uint32_t *set;
  uint64_t made;       /* queries so far */
  uint64_t at, before; /* ns: when the next is due, when the last was */
  uint32_t first;      /* of the set, in the last query */
  uint64_t size;       /* samples of a query */
} hn_schedule;

hone_status hn_schedule_open(const hone_load_settings *settings, hn_schedule *out, hone_error *error);
void hn_schedule_close(hn_schedule *schedule);
/* Server: whether there is another query. Offline: there is one. Others never end by themselves. */
bool hn_schedule_more(const hn_schedule *schedule);
/* Goes on to the next query; returns when it is due (server). */
uint64_t hn_schedule_next(hn_schedule *schedule);
/* Sample k of that query. */
uint32_t hn_schedule_sample(const hn_schedule *schedule, uint64_t k);
/* Queries of the server scenario. */
hone_status hn_schedule_count(const hone_load_settings *settings, uint64_t *count, hone_error *error);

#endif
