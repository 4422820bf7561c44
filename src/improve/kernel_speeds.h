/* What kernels of this machine take over what their cost models say, by tactic and by where the tensors of a
 * step fit: learned from timed steps, kept beside the roofs. Inside of improve and api. */
#ifndef HN_IMPROVE_KERNEL_SPEEDS_H
#define HN_IMPROVE_KERNEL_SPEEDS_H

#include "optimize/step/step.h"

#include <hone/improve.h>

/* Sums of what was timed. */
typedef struct hn_kernel_sums {
  uint32_t count;
  struct {
    const char *tactic; /* static */
    double measured[HONE_KERNEL_PLACES], model[HONE_KERNEL_PLACES];
  } kernel[HONE_MOST_KERNELS];
} hn_kernel_sums;

/* Where the tensors of a step fit, weights included. */
hone_kernel_place hn_kernel_place(const hone_step *step, const hone_machine *machine);
/* Adds what steps of a plan took (seconds by step; 0: not known). */
void hn_kernel_sums_add(hn_kernel_sums *sums, const hn_plan *plan, const double *seconds);
/* Puts what is new, and what contradicts what is known by more than HONE_KERNELS_DIFFER, in its place. How
 * many figures changed. */
uint32_t hn_kernel_speeds_learn(hone_kernel_speeds *speeds, const hn_kernel_sums *sums);
/* Takes from `old` what is not known yet. */
void hn_kernel_speeds_fill(hone_kernel_speeds *speeds, const hone_kernel_speeds *old);
/* Measured over model of a tactic, at that place or the nearest that is known; 0: the tactic is not known. */
double hn_kernel_factor(const hone_kernel_speeds *speeds, const char *tactic, hone_kernel_place place);

/* The cache of a device, instruction tier, thread count and version. False: there is none. */
bool hn_kernel_speeds_read(const hn_backend *backend, const hn_device *device, hone_kernel_speeds *out);
void hn_kernel_speeds_write(const hn_backend *backend, const hn_device *device, const hone_kernel_speeds *s);

/* How busy others keep the processors between two looks. */
typedef struct hn_neighbours {
  double busy, own;
  uint64_t ns;
} hn_neighbours;
hn_neighbours hn_neighbours_look(void);
/* Whether others took at most HONE_ROOFS_QUIET of the processors since then. */
bool hn_neighbours_quiet(const hn_neighbours *since);

#endif
