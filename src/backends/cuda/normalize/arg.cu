/* Position of the largest or smallest element along an axis: HN_GROUP threads share an output. Prefix: HN_TYPE,
 * HN_VALUE, HN_GROUP, HN_BETTER(a, b) (a comes before b), HN_LAST_INDEX (of equal ones the last). */
#include "arg_args.h"
#include "typed.cuh"
#include "walk.cuh"

/* Whether (a, i) is to be reported rather than (b, j). */
HN_FN int hn_first(HN_VALUE a, u32 i, HN_VALUE b, u32 j) {
  if (HN_BETTER(a, b)) return 1;
  if (HN_BETTER(b, a)) return 0;
  return HN_LAST_INDEX ? i > j : i < j;
}

HN_KERNEL_BOUNDS(hn_arg, hn_arg_args, a, 128, 4) {
  HN_GRID_GO();
  HN_SHARED HN_VALUE value[128];
  HN_SHARED u32 place[128];
  const int tid = (int)threadIdx.x, mine = tid % HN_GROUP;
  const u32 o = blockIdx.x * (128 / HN_GROUP) + (u32)(tid / HN_GROUP);
  const hn_walk_at at = hn_walk(&a.kept, o < a.outputs ? o : 0);
  HN_GRID_WAIT();
  u32 best = (u32)mine < a.length ? (u32)mine : 0;
  HN_VALUE top = hn_get(a.x, at.x + best * a.step);
  for (u32 r = (u32)mine + HN_GROUP; r < a.length; r += HN_GROUP) {
    const HN_VALUE v = hn_get(a.x, at.x + r * a.step);
    if (hn_first(v, r, top, best)) top = v, best = r;
  }
  value[tid] = top, place[tid] = best;
  for (int half = HN_GROUP / 2; half > 0; half /= 2) {
    HN_SYNC();
    if (mine < half && hn_first(value[tid + half], place[tid + half], value[tid], place[tid]))
      value[tid] = value[tid + half], place[tid] = place[tid + half];
  }
  if (mine == 0 && o < a.outputs) a.y[at.y] = place[tid];
}
