/* Convolutions along rows of planes, scalar tier. */
#include "backends/cpu/kernels/planes/planes.h"
#include "backends/cpu/kernels/vec/vec.h"
#include "backends/cpu/kernels/planes/planes_spread.h"

#define SIDE 1

static inline void turned(const vf a[8], float *y, int64_t pitch, int64_t pixels, uint32_t outputs) {
  (void)pitch;
  for (uint32_t o = 0; o < outputs && pixels > 0; o++) y[o] = a[o];
}

#include "backends/cpu/kernels/planes/planes_body.h"

const struct hn_kernel hn_kernel_planes_f32_scalar = {"planes_f32_scalar", "planes", "f32", HN_ISA_SCALAR,
                                                      &ops};
