/* Tables of Fourier transforms by definition (signal/fourier.cu). */
#ifndef HN_CUDA_SIGNAL_FOURIER_H
#define HN_CUDA_SIGNAL_FOURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cosines of 2 pi k / n for k < n, then the sines, negative unless inverse. */
static inline size_t hn_cuda_turns_bytes(int64_t n) { return (size_t)n * 2 * sizeof(double); }
void hn_cuda_turns(double *table, int64_t n, bool inverse);

#endif
