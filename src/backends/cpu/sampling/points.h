/* Sampling by coordinates: outputs of `groups` x `channels` planes of `out` points, each point a sum over a
 * few places of its group's image. Images are row-major, channel after channel; what the places are is the
 * operator's matter. */
#ifndef HN_CPU_SAMPLING_POINTS_H
#define HN_CPU_SAMPLING_POINTS_H

#include "backends/cpu/kernels/taps/taps.h"
#include "backends/cpu/step/step.h"

enum { HN_POINTS_TAPS = 64 }; /* at most */

typedef struct hn_points {
  hn_isa isa;
  int64_t images, channels, in, groups, out; /* in, out: elements of a plane */
  int64_t taps, tile;                        /* points of a task */
  bool turned;                               /* images are turned to pixels of all channels first */
} hn_points;

/* What points are sums of: at[taps][tile] and weight[taps][tile], and base[tile], what sums begin with. */
typedef struct hn_point_tables {
  const struct hn_taps_ops *ops;
  int64_t tile;
  int32_t *at;
  float *weight, *base;
} hn_point_tables;

/* Fills the tables for points first to first + n of a group. */
typedef void (*hn_points_fill)(const hone_step_run *run, int64_t group, int64_t first, int64_t n,
                               const hn_point_tables *tables);
typedef int64_t (*hn_points_image)(const hone_step_run *run, int64_t group);

/* Fills tile and turned from the rest; false where planes are too large or there are no kernels. */
bool hn_points_plan(hn_points *points, hone_reason *why);
size_t hn_points_workspace(const hn_points *points, uint32_t threads);
double hn_points_seconds(const hn_points *points, const hone_machine *machine);
void hn_points_run(const hone_step_run *run, const hn_points *points, const float *x, float *y,
                   hn_points_fill fill, hn_points_image image);

#endif
