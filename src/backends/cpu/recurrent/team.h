/* Work in many short phases that follow each other: all threads that are there share each phase, and go on to
 * the next one together. A fork and join for every phase costs about 2 us, this about a fifth: threads that
 * once came stay until the last phase and tell each other by one line of memory each.
 *
 * Nobody waits for a thread that has not come: the first one begins alone, others are members from the next
 * phase on. Where the pool runs all tasks on one thread, that one does all the work. */
#ifndef HN_CPU_RECURRENT_TEAM_H
#define HN_CPU_RECURRENT_TEAM_H

#include "backends/cpu/step/step.h"

enum { HN_TEAM_MOST = 64 };

/* Share `member` of `members` (at most the team's threads) of a phase. */
typedef void (*hn_team_fn)(void *arg, int64_t phase, uint32_t member, uint32_t members);

/* Runs phases 0..phases-1, each after the one before, on at most `threads` (and HN_TEAM_MOST) threads. */
void hn_team_run(int64_t phases, uint32_t threads, hn_team_fn fn, void *arg, hn_parallel_fn parallel,
                 void *pool);

#endif
