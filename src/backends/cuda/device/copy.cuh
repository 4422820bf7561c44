/* Copies between strided boxes, several in a launch: a block belongs to one piece. */
#include "elements.cuh"
#include "divide.cuh"
#include "moves_args.h"

enum { HN_COPY_EACH = 4 };

HN_FN void hn_copy_units(const hn_copy_piece *p, u32 block, int unit) {
  u32 w[HN_COPY_EACH][4];
  i64 to[HN_COPY_EACH];
  const u32 first = block * (blockDim.x * HN_COPY_EACH) + threadIdx.x;
  HN_UNROLL for (int e = 0; e < HN_COPY_EACH; e++) {
    u32 v = first + (u32)e * blockDim.x;
    if (v >= p->units) continue;
    i64 from = 0;
    to[e] = 0;
    for (int i = p->rank - 1; i > 0; i--) {
      const u32 next = hn_quotient(v, &p->dim[i]), at = v - next * p->dim[i].by;
      to[e] += at * p->to_stride[i];
      from += at * p->from_stride[i];
      v = next;
    }
    to[e] += v * p->to_stride[0];
    from += v * p->from_stride[0];
    if (p->from) {
      hn_ld_words(w[e], (const char *)p->from + from, unit);
    } else {
      w[e][0] = w[e][2] = (u32)p->fill;
      w[e][1] = w[e][3] = (u32)(p->fill >> 32);
    }
  }
  HN_UNROLL for (int e = 0; e < HN_COPY_EACH; e++) {
    if (first + (u32)e * blockDim.x < p->units) hn_st_words((char *)p->to + to[e], w[e], unit);
  }
}

HN_KERNEL(copy, hn_copy_args, a) {
  u32 k = 0;
  HN_GRID_GO();
  while (k + 1 < a.pieces && blockIdx.x >= a.piece[k + 1].first_block) k++;
  const hn_copy_piece *p = &a.piece[k];
  const u32 block = blockIdx.x - p->first_block;
  HN_GRID_WAIT();
  switch (p->log_unit) {
  case 0: hn_copy_units(p, block, 1); break;
  case 1: hn_copy_units(p, block, 2); break;
  case 2: hn_copy_units(p, block, 4); break;
  case 3: hn_copy_units(p, block, 8); break;
  default: hn_copy_units(p, block, 16); break;
  }
}
