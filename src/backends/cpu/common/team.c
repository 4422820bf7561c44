#include "backends/cpu/common/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* The first thread leads: before its share of a phase it says who shares that phase and who shared the one
 * before. It says so as soon as its own share of the phase before is done; whoever is told begins when the
 * other members have said, in their own lines, that theirs are done. As the leader waits for them as well
 * before it begins, what it last said is at most one phase ahead of a member. */
typedef struct word {
  uint64_t phase; /* counted from 1; 0: none yet */
  uint32_t before, now;
} word;

enum { MEMBER_BITS = 8, SPINS = 1 << 14 };
static const uint64_t ended = UINT64_MAX >> 2 * MEMBER_BITS;

static uint64_t packed(word w) {
  return w.phase << 2 * MEMBER_BITS | (uint64_t)w.before << MEMBER_BITS | w.now;
}
static word unpacked(uint64_t u) {
  const uint32_t mask = (1u << MEMBER_BITS) - 1;
  return (word){u >> 2 * MEMBER_BITS, (uint32_t)(u >> MEMBER_BITS) & mask, (uint32_t)u & mask};
}

/* Two lines: processors fetch lines in pairs. */
typedef struct slot {
  _Alignas(128) _Atomic uint64_t done; /* phases that are through, for this member */
} slot;

typedef struct team {
  int64_t phases;
  uint32_t threads;
  hn_team_fn fn;
  void *arg;
  _Alignas(128) _Atomic uint32_t arrived;
  _Alignas(128) _Atomic uint64_t go; /* the leader's word */
  slot slot[HN_TEAM_MOST];
} team;

static void relax(uint32_t *spins) {
  __builtin_ia32_pause();
  if (++*spins % SPINS == 0) sched_yield();
}

/* Until all members but the leader and `me` have `phases` phases behind them. */
static void await(team *t, uint32_t members, uint32_t me, uint64_t phases) {
  uint32_t spins = 0;
  for (uint32_t i = 1; i < members; i++)
    while (i != me && atomic_load_explicit(&t->slot[i].done, memory_order_acquire) < phases) relax(&spins);
}

static void lead(team *t) {
  uint32_t before = 1;
  for (int64_t phase = 0; phase < t->phases; phase++) {
    const uint32_t now = atomic_load_explicit(&t->arrived, memory_order_relaxed);
    atomic_store_explicit(&t->go, packed((word){(uint64_t)phase + 1, before, now}), memory_order_release);
    await(t, before, 0, (uint64_t)phase);
    t->fn(t->arg, phase, 0, now);
    before = now;
  }
  await(t, before, 0, (uint64_t)t->phases);
  atomic_store_explicit(&t->go, packed((word){ended, 0, 0}), memory_order_release);
}

static void follow(team *t, uint32_t me) {
  uint64_t done = 0;
  for (uint32_t spins = 0;;) {
    const word w = unpacked(atomic_load_explicit(&t->go, memory_order_acquire));
    if (w.phase == ended) return;
    if (me < w.before && done + 1 < w.phase) {
      done = w.phase - 1; /* the leader is through with this one: the one before it is behind all */
      t->fn(t->arg, (int64_t)done - 1, me, w.before);
    } else if (me < w.now && done < w.phase) {
      await(t, w.before, me, w.phase - 1);
      done = w.phase;
      t->fn(t->arg, (int64_t)done - 1, me, w.now);
    } else {
      relax(&spins);
      continue;
    }
    atomic_store_explicit(&t->slot[me].done, done, memory_order_release);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  team *t = arg;
  (void)index, (void)thread;
  const uint32_t me = atomic_fetch_add_explicit(&t->arrived, 1, memory_order_relaxed);
  if (me == 0)
    lead(t);
  else
    follow(t, me);
}

void hn_team_run(int64_t phases, uint32_t threads, hn_team_fn fn, void *arg, hn_parallel_fn parallel,
                 void *pool) {
  team t;
  memset(&t, 0, sizeof t);
  t.phases = phases, t.fn = fn, t.arg = arg;
  t.threads = threads < HN_TEAM_MOST ? threads : HN_TEAM_MOST;
  parallel(pool, t.threads, task, &t);
}
