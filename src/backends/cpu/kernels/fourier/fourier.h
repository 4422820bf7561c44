/* Family "fourier": discrete Fourier transforms of several lines side by side, a line a lane, in f32. A pass
 * for each factor of n; what the factors are is the driver's matter. */
#ifndef HN_KERNELS_FOURIER_H
#define HN_KERNELS_FOURIER_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_FOURIER_LANES = 16, HN_FOURIER_PASSES = 32 };

typedef struct hn_fourier_lines {
  size_t n, passes;
  uint32_t factor[HN_FOURIER_PASSES]; /* 2, 4 or odd; their product is n */
  const float *cosine, *sine;         /* [n] each: of the i-th turn, e^(-2 pi i / n), or its conjugate */
  float scale;                        /* what the result is multiplied by */
} hn_fourier_lines;

struct hn_fourier_ops {
  /* x: [n][2][lanes], real parts and imaginary ones; y: as much room. Both 64-byte aligned. folded: the
   * sums and differences of an odd factor, [2 factor][lanes]. Returns where the result is, x or y. */
  float *(*run)(const hn_fourier_lines *f, float *x, float *y, float *folded);
};

/* The best table at or below a tier. */
static inline const struct hn_fourier_ops *hn_fourier_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("fourier", "f32", isa);
  return k ? (const struct hn_fourier_ops *)k->ops : NULL;
}

#endif
