/* Runs a kernel: block after block, the threads of a block as fibers. Inside: what collectives.c needs. */
#ifndef HN_TESTS_CUDA_FIBERS_H
#define HN_TESTS_CUDA_FIBERS_H

#include "emulator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct emu_launch {
  const hn_emu_module *module;
  const hn_emu_entry *entry;
  hn_emu_dim grid, block;
  unsigned shared;  /* dynamic, in bytes */
  unsigned cluster; /* blocks of a cluster, along x; at least 1 */
  const void *args;
} emu_launch;

/* False and the reason when the kernel did something that is wrong; the rest of it is then not run. The seed
 * decides in which order warps and lanes come. Not from several threads at once for one module. */
bool emu_run(const emu_launch *launch, uint32_t seed, char *why, size_t size);

/* Of what a kernel has touched: whether it can be touched now (fake_memory.c). */
bool fake_open_touched(const void *address);

enum {
  EMU_WARP = 32,
  EMU_MAX_THREADS = 1024,
  EMU_SHARED_MAX = 228 * 1024,
  EMU_ZONE = 1024,
  EMU_MAX_CLUSTER = 16,
  EMU_CLUSTER = -1 /* in place of a line: the barrier of a cluster */
};

typedef struct emu_worker emu_worker;
typedef struct emu_stack emu_stack;

typedef struct emu_copy { /* cp.async that nobody has waited for */
  void *to;
  const void *from;
  unsigned size, bytes;
} emu_copy;

typedef struct emu_slot { /* what a lane brings to a collective and takes from it */
  unsigned in[8], out[4];
  const void *address;
} emu_slot;

typedef enum emu_meeting {
  EMU_BARRIER,
  EMU_SYNC_WARP,
  EMU_SHUFFLE,
  EMU_BALLOT,
  EMU_LDMATRIX,
  EMU_MMA
} emu_meeting;

typedef enum emu_warp_state { EMU_READY, EMU_AT_BARRIER, EMU_DONE } emu_warp_state;

typedef struct emu_warp {
  emu_warp_state state;
  emu_meeting meeting; /* where the lanes that have arrived wait */
  int detail;          /* line of the barrier; form of the collective */
  unsigned lanes, arrived, exited, step, next;
  emu_slot slot[2][EMU_WARP]; /* by the parity of the collective: the slow may still read the last one */
} emu_warp;

typedef struct emu_thread {
  hn_emu_thread head; /* first */
  emu_worker *worker;
  emu_warp *warp;
  void *sp; /* NULL: not started */
  emu_stack *stack;
  bool exited;
  unsigned parity;
  emu_copy *copy;
  unsigned copies, copy_room, groups, group_end[64]; /* copies before group_end[g] belong to groups 0..g */
} emu_thread;

/* Arrives at a collective: true in the last lane, which does what is to be done for all and then calls
 * emu_meet_end; the others return when that has happened. */
bool emu_meet(emu_thread *t, emu_meeting meeting, int detail);
void emu_fault(emu_thread *t, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
bool emu_is_shared(const emu_thread *t, const void *p, size_t bytes);
unsigned emu_shared_offset(const emu_thread *t, const void *p);
/* The place of p, in dynamic shared memory, in that of block `rank` of the cluster; NULL: it is none, or that
 * block has returned. */
void *emu_cluster_at(const emu_thread *t, const void *p, unsigned rank);

static inline emu_slot *emu_slot_of(const emu_thread *t, unsigned lane) {
  return &t->warp->slot[t->parity & 1][lane];
}

extern const hn_emu_api emu_api; /* collectives.c */

#endif
