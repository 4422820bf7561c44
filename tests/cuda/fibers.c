#include "fibers.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 * 1024, PAGE = 4096 };
static const unsigned char zone_byte = 0xfa, poison = 0xff; /* both are NaN in every float type */

struct emu_stack {
  emu_stack *next;
  unsigned char *top;
};

/* A block that runs, or waits for the others of its cluster. */
typedef struct emu_place {
  emu_thread *thread; /* [EMU_MAX_THREADS] */
  emu_warp *warp;
  unsigned char *shared; /* zone, EMU_SHARED_MAX, zone */
  hn_emu_block head;
  bool returned;
} emu_place;

struct emu_worker {
  const emu_launch *launch;
  void *sp; /* of the scheduler */
  emu_place place[EMU_MAX_CLUSTER];
  unsigned at;        /* the place that runs: */
  emu_thread *thread; /* ...its own */
  emu_warp *warp;
  unsigned char *shared;
  unsigned threads, warps;
  emu_stack *free;
  unsigned stacks;
  uint32_t seed;
  bool faulted;
  char why[512];
};

/* Saves the callee-saved registers on this stack, its pointer in *save, and continues at `to`. */
void emu_switch(void **save, void *to) __attribute__((visibility("hidden")));
void emu_fiber_entry(void) __attribute__((visibility("hidden")));
void emu_switch_back(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden emu_switch\n.hidden emu_fiber_entry\n.hidden emu_switch_back\n"
        ".globl emu_switch\n.type emu_switch,@function\n"
        "emu_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        ".globl emu_switch_back\n.type emu_switch_back,@function\n"
        "emu_switch_back:\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".globl emu_fiber_entry\n.type emu_fiber_entry,@function\n"
        "emu_fiber_entry:\n"
        "  movq %rbx, %rdi\n"
        "  call emu_fiber_main\n"
        "  ud2\n");
void emu_fiber_main(emu_worker *w) __attribute__((noreturn, used, visibility("hidden")));

static __thread emu_worker *running; /* for the signal handler */

static uint32_t next_random(uint32_t *seed) {
  *seed ^= *seed << 13, *seed ^= *seed >> 17, *seed ^= *seed << 5;
  return *seed;
}

/* ---------------------------------------------------------------- stacks */

static emu_stack *take_stack(emu_worker *w) {
  emu_stack *s = w->free;
  if (s) {
    w->free = s->next;
    return s;
  }
  unsigned char *p = mmap(NULL, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  mprotect(p, PAGE, PROT_NONE);
  /* Tops at the same offset of every page would share one set of the cache. */
  unsigned char *top = p + STACK_BYTES + PAGE - (w->stacks++ * 320u) % PAGE;
  s = (emu_stack *)(top - sizeof *s);
  s->top = (unsigned char *)((uintptr_t)s & ~(uintptr_t)63);
  return s;
}

static void give_stack(emu_worker *w, emu_stack *s) {
  s->next = w->free;
  w->free = s;
}

static void *fresh_sp(emu_worker *w, const emu_stack *s) {
  void **sp = (void **)s->top;
  *--sp = (void *)emu_fiber_entry;
  for (int i = 0; i < 6; i++) *--sp = NULL;
  sp[4] = w; /* rbx */
  return sp;
}

/* ---------------------------------------------------------------- switching */

static void set_now(emu_worker *w, emu_thread *t) { *w->launch->module->now = &t->head; }

static emu_thread *now_of(emu_worker *w) { return (emu_thread *)*w->launch->module->now; }

static void switch_to_thread(emu_worker *w, void **save, emu_thread *t) {
  set_now(w, t);
  if (!t->sp) {
    t->stack = take_stack(w);
    t->sp = fresh_sp(w, t->stack);
  }
  emu_switch(save, t->sp);
}

static emu_thread *lane_of(emu_worker *w, const emu_warp *p, unsigned lane) {
  return &w->thread[(size_t)(p - w->warp) * EMU_WARP + lane];
}

static unsigned lane_after(const emu_warp *p, unsigned lane) { return (lane + p->step) % p->lanes; }

void emu_fault(emu_thread *t, const char *format, ...) {
  emu_worker *w = t->worker;
  if (!w->faulted) {
    const hn_emu_block *b = w->launch->module->block;
    int n = snprintf(w->why, sizeof w->why,
                     "kernel %s, block %u,%u,%u, thread %u,%u,%u: ", w->launch->entry->name, b->index.x,
                     b->index.y, b->index.z, t->head.index.x, t->head.index.y, t->head.index.z);
    va_list list;
    va_start(list, format);
    if (n > 0 && (size_t)n < sizeof w->why) vsnprintf(w->why + n, sizeof w->why - (size_t)n, format, list);
    va_end(list);
    w->faulted = true;
  }
  void *forgotten;
  emu_switch(&forgotten, w->sp);
  abort();
}

static const char *const meeting_name[] = {
    [EMU_BARRIER] = "the block's barrier", [EMU_SYNC_WARP] = "the warp's barrier",
    [EMU_SHUFFLE] = "a shuffle",           [EMU_BALLOT] = "a ballot",
    [EMU_LDMATRIX] = "ldmatrix",           [EMU_MMA] = "mma"};

bool emu_meet(emu_thread *t, emu_meeting meeting, int detail) {
  emu_warp *p = t->warp;
  emu_worker *w = t->worker;
  if (p->exited)
    emu_fault(t, "waits at %s, which %u threads of its warp will not reach: they have returned",
              meeting_name[meeting], p->exited);
  if (p->lanes < EMU_WARP && meeting > EMU_SYNC_WARP)
    emu_fault(t, "%s in a warp of %u threads", meeting_name[meeting], p->lanes);
  if (!p->arrived)
    p->meeting = meeting, p->detail = detail;
  else if (p->meeting != meeting)
    emu_fault(t, "the warp has diverged: %s here, %s elsewhere", meeting_name[meeting],
              meeting_name[p->meeting]);
  else if (p->detail != detail)
    emu_fault(t, "the warp has diverged: %s of line or form %d here, %d elsewhere", meeting_name[meeting],
              detail, p->detail);
  if (++p->arrived < p->lanes) {
    switch_to_thread(w, &t->sp, lane_of(w, p, lane_after(p, t->head.lane)));
    return false;
  }
  p->arrived = 0;
  if (meeting != EMU_BARRIER) return true;
  p->state = EMU_AT_BARRIER;
  p->next = t->head.lane;
  emu_switch(&t->sp, w->sp);
  return false;
}

void emu_fiber_main(emu_worker *w) {
  for (;;) {
    emu_thread *t = now_of(w);
    emu_warp *p = t->warp;
    w->launch->entry->call(w->launch->args);
    t->exited = true;
    if (p->arrived) {
      p->arrived = 0;
      emu_fault(t, "returned while threads of its warp wait at %s", meeting_name[p->meeting]);
    }
    emu_stack *s = t->stack;
    void *forgotten;
    if (++p->exited == p->lanes) {
      p->state = EMU_DONE;
      give_stack(w, s);
      emu_switch(&forgotten, w->sp);
      abort();
    }
    emu_thread *other = lane_of(w, p, lane_after(p, t->head.lane));
    if (!other->sp) { /* the same stack, while it is warm */
      other->stack = s;
      other->sp = s;
      set_now(w, other);
      continue;
    }
    give_stack(w, s);
    switch_to_thread(w, &forgotten, other);
    abort();
  }
}

/* ---------------------------------------------------------------- faults of the processor */

static void on_signal(int number, siginfo_t *info, void *context) {
  emu_worker *w = running;
  if (!w) { /* not ours: as if there were no handler */
    signal(number, SIG_DFL);
    return;
  }
  if (number == SIGSEGV && fake_open_touched(info->si_addr)) return;
  emu_thread *t = now_of(w);
  const hn_emu_block *b = w->launch->module->block;
  snprintf(w->why, sizeof w->why, "kernel %s, block %u,%u,%u, thread %u,%u,%u: %s at address %p",
           w->launch->entry->name, b->index.x, b->index.y, b->index.z, t->head.index.x, t->head.index.y,
           t->head.index.z, number == SIGFPE ? "division by zero" : "illegal memory access", info->si_addr);
  w->faulted = true;
  ucontext_t *u = context; /* continue in the scheduler, as a switch would */
  u->uc_mcontext.gregs[REG_RSP] = (greg_t)(intptr_t)w->sp;
  u->uc_mcontext.gregs[REG_RIP] = (greg_t)(intptr_t)emu_switch_back;
}

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { SIGNALS = sizeof signals / sizeof *signals };

typedef struct guard {
  struct sigaction old[SIGNALS];
  stack_t old_stack;
  unsigned char stack[64 * 1024];
} guard;

static void guard_on(guard *g) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  const stack_t stack = {.ss_sp = g->stack, .ss_size = sizeof g->stack};
  sigemptyset(&action.sa_mask);
  sigaltstack(&stack, &g->old_stack);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &g->old[i]);
}

static void guard_off(guard *g) {
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &g->old[i], NULL);
  sigaltstack(&g->old_stack, NULL);
}

/* ---------------------------------------------------------------- blocks */

bool emu_is_shared(const emu_thread *t, const void *p, size_t bytes) {
  const hn_emu_module *m = t->worker->launch->module;
  const unsigned char *at = p, *dynamic = m->block->dynamic;
  return (at >= m->shared && at + bytes <= m->shared_end) ||
         (at >= dynamic && at + bytes <= dynamic + t->worker->launch->shared);
}

unsigned emu_shared_offset(const emu_thread *t, const void *p) {
  const hn_emu_module *m = t->worker->launch->module;
  const unsigned char *at = p;
  if (at >= m->shared && at <= m->shared_end) return (unsigned)(EMU_SHARED_MAX + (at - m->shared));
  return (unsigned)(at - m->block->dynamic);
}

/* Goes on with the block at place k of the cluster. */
static void enter(emu_worker *w, unsigned k) {
  w->at = k;
  w->thread = w->place[k].thread, w->warp = w->place[k].warp, w->shared = w->place[k].shared;
  *w->launch->module->block = w->place[k].head;
}

static void start_block(emu_worker *w) {
  const emu_launch *l = w->launch;
  const unsigned n = l->block.x * l->block.y * l->block.z;
  w->threads = n, w->warps = (n + EMU_WARP - 1) / EMU_WARP;
  const uint32_t order = next_random(&w->seed);
  for (unsigned i = 0; i < n; i++) {
    emu_thread *t = &w->thread[i];
    t->head.index = (hn_emu_dim){i % l->block.x, i / l->block.x % l->block.y, i / l->block.x / l->block.y};
    t->head.lane = i % EMU_WARP;
    t->worker = w, t->warp = &w->warp[i / EMU_WARP];
    t->sp = t->stack = NULL;
    t->exited = false;
    t->parity = t->copies = t->groups = 0;
  }
  for (unsigned k = 0; k < w->warps; k++) {
    emu_warp *p = &w->warp[k];
    p->state = EMU_READY;
    p->lanes = n - k * EMU_WARP < EMU_WARP ? n - k * EMU_WARP : EMU_WARP;
    p->arrived = p->exited = 0;
    p->step = order & 1 ? 1 : p->lanes - 1;
    p->next = order & 1 ? 0 : p->lanes - 1;
  }
  memset(l->module->shared, poison, (size_t)(l->module->shared_end - l->module->shared));
  memset(l->module->block->dynamic, poison, l->shared);
  memset(l->module->block->dynamic + l->shared, zone_byte, EMU_ZONE);
}

static void check_zones(emu_worker *w) {
  const unsigned char *before = w->shared, *behind = w->launch->module->block->dynamic + w->launch->shared;
  for (unsigned i = 0; i < EMU_ZONE; i++)
    if (before[i] != zone_byte || behind[i] != zone_byte) {
      const hn_emu_block *b = w->launch->module->block;
      snprintf(w->why, sizeof w->why, "kernel %s, block %u,%u,%u: wrote %s its dynamic shared memory",
               w->launch->entry->name, b->index.x, b->index.y, b->index.z,
               behind[i] != zone_byte ? "behind" : "before");
      w->faulted = true;
      memset(w->shared, zone_byte, EMU_ZONE);
      return;
    }
}

/* All warps up to their next barrier or their end, in an order that changes from block to block. */
static void run_phase(emu_worker *w) {
  const uint32_t r = next_random(&w->seed);
  const unsigned first = (r >> 1) % w->warps;
  for (unsigned i = 0; i < w->warps && !w->faulted; i++) {
    const unsigned k = (r & 1 ? first + i : first + w->warps - i) % w->warps;
    emu_warp *p = &w->warp[k];
    if (p->state == EMU_READY) switch_to_thread(w, &w->sp, lane_of(w, p, p->next));
  }
}

/* Up to the block's end, or (true) to where it waits for its cluster. */
static bool run_block(emu_worker *w) {
  bool together = false;
  while (!w->faulted && !together) {
    run_phase(w);
    if (w->faulted) break;
    unsigned waiting = 0, done = 0, first = 0;
    for (unsigned k = w->warps; k-- > 0;) {
      if (w->warp[k].state == EMU_DONE)
        done += w->warp[k].lanes;
      else
        waiting++, first = k;
    }
    if (!waiting) break;
    for (unsigned k = 0; k < w->warps && !w->faulted; k++) {
      emu_warp *p = &w->warp[k];
      const hn_emu_block *b = w->launch->module->block;
      if (done || p->detail != w->warp[first].detail) {
        char what[96];
        if (done)
          snprintf(what, sizeof what, "%u threads have returned", done);
        else
          snprintf(what, sizeof what, "others wait at line %d", p->detail);
        snprintf(w->why, sizeof w->why, "kernel %s, block %u,%u,%u: the block's barrier of line %d: %s",
                 w->launch->entry->name, b->index.x, b->index.y, b->index.z, w->warp[first].detail, what);
        w->faulted = true;
      }
      p->state = EMU_READY;
    }
    together = w->warp[first].detail == EMU_CLUSTER;
  }
  return together;
}

static void end_block(emu_worker *w) {
  if (w->faulted) { /* stacks of threads that will never go on */
    for (unsigned i = 0; i < w->threads; i++)
      if (w->thread[i].sp && !w->thread[i].exited) give_stack(w, w->thread[i].stack);
    return;
  }
  check_zones(w);
}

/* The blocks of a cluster, which begins at `index`: each in turn up to its end or to where they meet. */
static void run_cluster(emu_worker *w, hn_emu_dim index) {
  const unsigned n = w->launch->cluster;
  for (unsigned k = 0; k < n; k++) {
    emu_place *p = &w->place[k];
    p->head = (hn_emu_block){.index = {index.x + k, index.y, index.z},
                             .size = w->launch->block,
                             .grid = w->launch->grid,
                             .dynamic = p->shared + EMU_ZONE};
    p->returned = false;
    enter(w, k);
    start_block(w);
  }
  for (unsigned waiting = n; waiting && !w->faulted;) {
    const unsigned first = n > 1 ? next_random(&w->seed) % n : 0;
    waiting = 0;
    for (unsigned i = 0; i < n && !w->faulted; i++) {
      enter(w, (first + i) % n);
      if (run_block(w))
        waiting++;
      else
        w->place[w->at].returned = true;
    }
    if (waiting && waiting < n && !w->faulted) {
      snprintf(w->why, sizeof w->why,
               "kernel %s: %u of %u blocks wait for a cluster whose others have returned",
               w->launch->entry->name, waiting, n);
      w->faulted = true;
    }
  }
  for (unsigned k = 0; k < n; k++) {
    enter(w, k);
    end_block(w);
  }
}

void *emu_cluster_at(const emu_thread *t, const void *p, unsigned rank) {
  emu_worker *w = t->worker;
  const size_t offset = (size_t)((const unsigned char *)p - w->place[w->at].head.dynamic);
  if (rank >= w->launch->cluster || offset >= w->launch->shared) return NULL;
  return w->place[rank].returned ? NULL : w->place[rank].head.dynamic + offset;
}

static void make_place(emu_place *p) {
  if (p->shared) return;
  p->thread = calloc(EMU_MAX_THREADS, sizeof *p->thread);
  p->warp = calloc(EMU_MAX_THREADS / EMU_WARP, sizeof *p->warp);
  unsigned char *shared =
      mmap(NULL, EMU_SHARED_MAX + 4 * EMU_ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!p->thread || !p->warp || shared == MAP_FAILED) abort();
  p->shared = shared;
  memset(shared, zone_byte, EMU_ZONE);
}

bool emu_run(const emu_launch *launch, uint32_t seed, char *why, size_t size) {
  static emu_worker *mine; /* launches are one at a time */
  if (!mine) mine = calloc(1, sizeof *mine);
  if (!mine) abort();
  emu_worker *w = mine;
  for (unsigned k = 0; k < launch->cluster; k++) make_place(&w->place[k]);
  static guard g;
  w->launch = launch;
  w->seed = seed | 1;
  w->faulted = false;
  *launch->module->api = &emu_api;
  hn_emu_dim at;
  guard_on(&g);
  running = w;
  for (at.z = 0; at.z < launch->grid.z && !w->faulted; at.z++)
    for (at.y = 0; at.y < launch->grid.y && !w->faulted; at.y++)
      for (at.x = 0; at.x < launch->grid.x && !w->faulted; at.x += launch->cluster) run_cluster(w, at);
  running = NULL;
  guard_off(&g);
  if (w->faulted) snprintf(why, size, "%s", w->why);
  return !w->faulted;
}
