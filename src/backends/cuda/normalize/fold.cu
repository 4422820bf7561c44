/* Reductions over any dimensions. The prefix says what is folded:
 *   HN_TYPE, HN_OUT (types of elements.cuh), HN_VALUE (of x), HN_ACC (of sums), HN_W (elements of a vector)
 *   HN_ZERO, HN_ADD(acc, x), HN_MEET(acc, acc), HN_END(acc, count) of type HN_RESULT
 * hn_fold_columns: the kept dimensions are contiguous, threads beside each other keep neighbouring outputs.
 * hn_fold_rows: the reduced ones are. A group of threads shares an output; blocks along y split the length and
 * leave partial results for hn_fold_finish. */
#include "fold_args.h"
#include "typed.cuh"
#include "walk.cuh"

#ifdef HN_EXP_SUM
typedef struct hn_exp_sum { /* sum of exp(x - top) */
  double top, sum;
} hn_exp_sum;
HN_FN hn_exp_sum hn_exp_sum_of(double top, double sum) {
  hn_exp_sum s = {top, sum};
  return s;
}
/* An infinite top stands for itself. */
HN_FN hn_exp_sum hn_exp_sum_meet(hn_exp_sum a, hn_exp_sum b) {
  if (a.sum == 0) return b;
  if (b.sum == 0) return a;
  if (b.top > a.top || b.top != b.top) {
    const hn_exp_sum t = a;
    a = b, b = t;
  }
  if (a.top - a.top == 0) a.sum += b.sum * exp(b.top - a.top);
  return a;
}
HN_FN double hn_exp_sum_end(hn_exp_sum a) { return a.top - a.top == 0 ? a.top + log(a.sum) : a.top; }
#endif

HN_FN void hn_finish(const hn_fold_args *a, u32 output, i64 y, HN_ACC acc) {
  const bool padding = a->padded && (int)(output % (u32)a->padded) >= a->channels;
  hn_put(a->y, y, padding ? (HN_RESULT)0 : HN_END(acc, a->count));
}

/* Sums of the `group` threads that are `step` apart, at the first of them. */
#define HN_TREE(acc, group, step)                                                                            \
  do {                                                                                                       \
    HN_SHARED HN_ACC met[256];                                                                               \
    HN_SYNC();                                                                                               \
    met[threadIdx.x] = acc;                                                                                  \
    for (int half = (group) / 2; half > 0; half /= 2) {                                                      \
      HN_SYNC();                                                                                             \
      if ((int)threadIdx.x / (step) % (group) < half) met[threadIdx.x] = HN_MEET(met[threadIdx.x], met[threadIdx.x + half * (step)]); \
    }                                                                                                        \
    HN_SYNC();                                                                                               \
    acc = met[threadIdx.x];                                                                                  \
  } while (0)

/* Of column `w` of vector k. */
HN_FN void hn_column_ends(const hn_fold_args *a, u32 k, i64 y, int w, HN_ACC acc) {
  if (a->splits > 1)
    ((HN_ACC *)a->part)[((u64)blockIdx.y * a->outputs + k) * HN_W + (u32)w] = acc;
  else
    hn_finish(a, k * HN_W + (u32)w, y + w, acc);
}

HN_KERNEL_BOUNDS(hn_fold_columns, hn_fold_args, a, 256, 2) {
  HN_GRID_GO();
  const int lanes = 256 / a.group, mine = (int)threadIdx.x / lanes;
  const u32 k = blockIdx.x * (u32)lanes + threadIdx.x % (u32)lanes;
  const bool works = k < a.outputs;
  const hn_walk_at at = hn_walk(&a.kept, works ? k : 0);
  HN_ACC acc[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = HN_ZERO;
  const u32 stride = (u32)a.group * a.splits;
  HN_GRID_WAIT();
  if (a.gone.rank == 1) {
    const i64 step = a.gone.x[0] * stride;
    i64 x = at.x + a.gone.x[0] * (mine + blockIdx.y * (u32)a.group);
    u32 r = (u32)mine + blockIdx.y * (u32)a.group;
    for (; r < a.length; r += 4 * stride, x += 4 * step) { /* four loads on their way */
      HN_VALUE v[4][HN_W];
      HN_UNROLL for (u32 j = 0; j < 4; j++)
        if (r + j * stride < a.length) hn_fetch(a.x, x + j * step, v[j]);
      HN_UNROLL for (u32 j = 0; j < 4; j++)
        HN_UNROLL for (int w = 0; w < HN_W; w++)
          if (r + j * stride < a.length) acc[w] = HN_ADD(acc[w], v[j][w]);
    }
  } else {
    for (u32 r = (u32)mine + blockIdx.y * (u32)a.group; r < a.length; r += stride) {
      HN_VALUE v[HN_W];
      hn_fetch(a.x, at.x + hn_walk(&a.gone, r).x, v);
      HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = HN_ADD(acc[w], v[w]);
    }
  }
  HN_SHARED HN_ACC met[HN_W][256];
  if (a.group > 1) {
    HN_UNROLL for (int w = 0; w < HN_W; w++) met[w][threadIdx.x] = acc[w];
    for (int half = a.group / 2; half > 0; half /= 2) {
      HN_SYNC();
      if (mine < half)
        HN_UNROLL for (int w = 0; w < HN_W; w++)
          met[w][threadIdx.x] = HN_MEET(met[w][threadIdx.x], met[w][(int)threadIdx.x + half * lanes]);
    }
    /* The threads that shared columns share what is left to do, too: a division takes long. */
    HN_SYNC();
    if (works)
      for (int w = mine; w < HN_W; w += a.group) hn_column_ends(&a, k, at.y, w, met[w][(int)threadIdx.x % lanes]);
    return;
  }
  if (!works) return;
  HN_UNROLL for (int w = 0; w < HN_W; w++) hn_column_ends(&a, k, at.y, w, acc[w]);
}

HN_KERNEL_BOUNDS(hn_fold_rows, hn_fold_args, a, 256, 2) {
  HN_GRID_GO();
  const int mine = (int)threadIdx.x % a.group;
  const u32 o = blockIdx.x * (256u / (u32)a.group) + threadIdx.x / (u32)a.group;
  const bool works = o < a.outputs;
  const hn_walk_at at = hn_walk(&a.kept, works ? o : 0);
  const u32 stride = (u32)a.group * a.splits;
  HN_ACC acc[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = HN_ZERO;
  HN_GRID_WAIT();
  if (a.gone.rank == 1) {
    u32 r = (u32)mine + blockIdx.y * (u32)a.group;
    for (; r < a.length; r += 4 * stride) {
      HN_VALUE v[4][HN_W];
      HN_UNROLL for (u32 j = 0; j < 4; j++)
        if (r + j * stride < a.length) hn_fetch(a.x, at.x + (r + j * stride) * a.gone.x[0], v[j]);
      HN_UNROLL for (u32 j = 0; j < 4; j++)
        HN_UNROLL for (int w = 0; w < HN_W; w++)
          if (r + j * stride < a.length) acc[w] = HN_ADD(acc[w], v[j][w]);
    }
  } else {
    for (u32 r = (u32)mine + blockIdx.y * (u32)a.group; r < a.length; r += stride) {
      HN_VALUE v[HN_W];
      hn_fetch(a.x, at.x + hn_walk(&a.gone, r).x, v);
      HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = HN_ADD(acc[w], v[w]);
    }
  }
  HN_UNROLL for (int w = 1; w < HN_W; w++) acc[0] = HN_MEET(acc[0], acc[w]);
  HN_TREE(acc[0], a.group, 1);
  if (works && mine == 0) {
    if (a.splits > 1)
      ((HN_ACC *)a.part)[(u64)blockIdx.y * a.outputs + o] = acc[0];
    else
      hn_finish(&a, o, at.y, acc[0]);
  }
}

/* One thread an output of the partial results of either. HN_PART: outputs that one position of `kept` stands for. */
HN_KERNEL_BOUNDS(hn_fold_finish, hn_fold_args, a, 256, 2) {
  HN_GRID_GO();
  const u32 i = blockIdx.x * 256 + threadIdx.x, all = a.outputs * HN_PART;
  HN_GRID_WAIT();
  if (i >= all) return;
  HN_ACC acc = HN_ZERO;
  for (u32 s = 0; s < a.splits; s++) acc = HN_MEET(acc, ((const HN_ACC *)a.part)[(u64)s * all + i]);
  hn_finish(&a, i, hn_walk(&a.kept, i / HN_PART).y + i % HN_PART, acc);
}
