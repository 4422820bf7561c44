/* Measured roofs of the processor: the loops that reach its peaks, what they are timed with, and the windows
 * that are taken. Inside of improve only, and of its tests. */
#ifndef HN_IMPROVE_ROOFS_H
#define HN_IMPROVE_ROOFS_H

#include "backends/cpu/kernels/features.h"

#include <hone/improve.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loop of `rounds` independent operations; returns something that depends on all of them. */
typedef struct hn_roof_loop {
  uint64_t (*run)(uint64_t rounds, const void *data, size_t bytes);
  double work; /* operations of one round; for reads: 0, every round reads `bytes` once */
} hn_roof_loop;

/* The best loops of a tier; run NULL where the tier has no such instructions. */
typedef struct hn_roof_loops {
  hn_roof_loop f32, bf16, int8, read;
  hn_roof_loop int8_vector; /* where int8 is of tiles */
} hn_roof_loops;

hn_roof_loops hn_roof_loops_of(hn_isa isa);

/* The figures of hone_roofs, by number. */
#define HN_ROOFS(X)                                                                                          \
  X(f32_gflops) X(bf16_gflops) X(int8_gops) X(int8_vector_gops) X(l1_gbs) X(l2_gbs) X(l3_gbs) X(dram_gbs)
typedef enum hn_roof_figure {
#define X(name) HN_ROOF_##name,
  HN_ROOFS(X)
#undef X
      HN_ROOF_COUNT
} hn_roof_figure;

/* What the system has counted so far, in seconds. busy (of all processors, whoever used them) and delay (in
 * which threads of this process waited for one) are negative where it does not count. */
typedef struct hn_load {
  double time, busy, own, delay;
} hn_load;

/* Bytes that each thread reads, for the bandwidth of the last cache and of memory. */
typedef struct hn_roof_buffers {
  size_t l3; /* well beyond the second level, and no more of the last than a guest on a shared machine has */
  size_t dram; /* all threads' together twice their caches at least, where there is room */
} hn_roof_buffers;

/* l2: bytes of a processor's second level; l3: of all last-level caches that the threads have; room: of
 * memory, of which a quarter is taken at most. */
hn_roof_buffers hn_roof_buffers_for(uint32_t threads, size_t l2, size_t l3, uint64_t room);

/* What figures are measured with. Tests bring their own. */
typedef struct hn_roof_meter hn_roof_meter;
struct hn_roof_meter {
  uint32_t processors; /* that the process may use */
  /* Before the first figure, and after the last. threads and capacities of caches are in `machine`. */
  hone_status (*open)(hn_roof_meter *meter, const hone_roofs *machine, hone_error *error);
  void (*close)(hn_roof_meter *meter);
  /* GFLOP/s or GB/s of one window, a short one when time is up meanwhile; 0: nothing of that kind here, or no
   * time to make its buffers. */
  double (*rate)(hn_roof_meter *meter, hn_roof_figure figure);
  void (*load)(hn_roof_meter *meter, hn_load *now);
  double until; /* 0, or when time is up, as load tells it */
};

/* hone_roofs_measure with another meter than the processor itself. */
hone_status hn_roofs_measure(hn_roof_meter *meter, uint32_t threads, const hone_roofs_options *options,
                             hone_roofs *out, hone_error *error);

/* hone_roofs_measure's own; freed with hn_free. NULL: out of memory. */
hn_roof_meter *hn_roof_meter_new(void);

/* HONE_ROOF_QUICK=1, for whoever starts many commands on a busy machine: one window of few repeats on small
 * buffers is enough. What stands for DRAM may then be a large last-level cache. */
bool hn_roof_quick(void);

#endif
