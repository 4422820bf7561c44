#include "backends/cpu/recurrent/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* The first thread leads: before its share of a phase it says who shares that phase and who shared the one
 * before. It says so as soon as its own share of the phase before is done; whoever is told begins when the
 * other members have said, in their own lines, that theirs are done.
 *
 * A member claims its share before it begins. What is not claimed after a while, as the system runs something
 * else in the member's place, the leader claims and does itself; the member finds that out when it comes
 * back, perhaps many phases later. What it then reads of the leader is the last phase or the one before. */
typedef struct word {
  uint64_t phase; /* counted from 1; 0: none yet */
  uint32_t before, now;
} word;

enum {
  MEMBER_BITS = 8,
  PATIENCE = 128, /* pauses, of some 50 ns each, until the leader takes over a share */
  SPINS = 512     /* until a thread that waits lets others run */
};
static const uint64_t ended = UINT64_MAX >> 2 * MEMBER_BITS;

static uint64_t packed(word w) {
  return w.phase << 2 * MEMBER_BITS | (uint64_t)w.before << MEMBER_BITS | w.now;
}
static word unpacked(uint64_t u) {
  const uint32_t mask = (1u << MEMBER_BITS) - 1;
  return (word){u >> 2 * MEMBER_BITS, (uint32_t)(u >> MEMBER_BITS) & mask, (uint32_t)u & mask};
}

/* Of a member: the last phase of which its share was begun, and was done. Two lines apart each, as processors
 * fetch lines in pairs: others read `done` only. */
typedef struct slot {
  _Alignas(128) _Atomic uint64_t claimed;
  _Alignas(128) _Atomic uint64_t done;
} slot;

typedef struct team {
  int64_t phases;
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

/* Does a member's share of a phase, unless somebody else has begun it. */
static void work(team *t, uint64_t phase, uint32_t member, uint32_t members) {
  slot *s = &t->slot[member];
  uint64_t last = atomic_load_explicit(&s->claimed, memory_order_relaxed);
  if (last >= phase || !atomic_compare_exchange_strong_explicit(&s->claimed, &last, phase,
                                                                memory_order_relaxed, memory_order_relaxed))
    return;
  t->fn(t->arg, (int64_t)phase - 1, member, members);
  atomic_store_explicit(&s->done, phase, memory_order_release);
}

static bool is_done(team *t, uint32_t member, uint64_t phase) {
  return atomic_load_explicit(&t->slot[member].done, memory_order_acquire) >= phase;
}

static void lead(team *t) {
  uint32_t members = 1;
  for (uint64_t phase = 1; phase <= (uint64_t)t->phases; phase++) {
    const uint32_t now = atomic_load_explicit(&t->arrived, memory_order_relaxed);
    atomic_store_explicit(&t->go, packed((word){phase, members, now}), memory_order_release);
    for (uint32_t i = 1, spins = 0; i < members; i++)
      while (!is_done(t, i, phase - 1)) {
        relax(&spins);
        if (spins >= PATIENCE) work(t, phase - 1, i, members);
      }
    members = now;
    t->fn(t->arg, (int64_t)phase - 1, 0, members);
  }
  for (uint32_t i = 1, spins = 0; i < members; i++)
    while (!is_done(t, i, (uint64_t)t->phases)) {
      relax(&spins);
      if (spins >= PATIENCE) work(t, (uint64_t)t->phases, i, members);
    }
  atomic_store_explicit(&t->go, packed((word){ended, 0, 0}), memory_order_release);
}

static void follow(team *t, uint32_t me) {
  uint64_t seen = 0; /* phases that are through, for this member */
  for (uint32_t spins = 0;;) {
    const word w = unpacked(atomic_load_explicit(&t->go, memory_order_acquire));
    if (w.phase == ended) return;
    if (me < w.before && seen + 1 < w.phase) { /* the leader is through with it: all did the one before */
      work(t, seen = w.phase - 1, me, w.before);
    } else if (me < w.now && seen < w.phase) {
      for (uint32_t i = 1; i < w.before; i++)
        while (!is_done(t, i, w.phase - 1)) relax(&spins); /* its own may have been taken over */
      work(t, seen = w.phase, me, w.now);
      spins = 0;
    } else {
      relax(&spins);
    }
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
  parallel(pool, threads < HN_TEAM_MOST ? threads : HN_TEAM_MOST, task, &t);
}
