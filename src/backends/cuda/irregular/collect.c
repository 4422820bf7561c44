#include "backends/cuda/irregular/collect.h"

#include "backends/cuda/device/counted_args.h"
#include "base/integers.h"

enum { THREADS = 256, EACH = 2048 };

void hn_cuda_collect(hn_cuda_direct *p, int mask, int64_t n) {
  const int64_t blocks = hn_div_up(n, EACH);
  p->text = "collect", p->counted = true;
  hn_cuda_direct_define(p, "HN_MASK", mask);
  p->args.p[0] = n, p->args.p[1] = blocks;
  p->workspace = HN_COUNTED_BYTES + (size_t)blocks * sizeof(uint32_t);
  hn_cuda_direct_add(p, "hn_count", blocks, THREADS);
  hn_cuda_direct_add(p, "hn_offsets", 1, THREADS);
  hn_cuda_direct_add(p, "hn_places", blocks, THREADS);
}
