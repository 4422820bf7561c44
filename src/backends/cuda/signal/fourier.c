#include "backends/cuda/signal/fourier.h"

#include <math.h>

void hn_cuda_turns(double *table, int64_t n, bool inverse) {
  const double turn = 2 * 3.14159265358979323846 / (double)n;
  for (int64_t k = 0; k < n; k++) {
    table[k] = cos(turn * (double)k);
    table[n + k] = (inverse ? 1 : -1) * sin(turn * (double)k);
  }
}
