/* What tactics that hand a step to one of NVIDIA's libraries share. */
#ifndef HN_CUDA_LIBRARIES_LIBRARY_STEP_H
#define HN_CUDA_LIBRARIES_LIBRARY_STEP_H

#include <hone/plugin.h>

/* The most workspace that an engine of a library may want for a step: four times what the step moves, between
 * 2 and 32 MiB. (Partial sums of a product cut along k are as large as its output, in f32, for each cut.) */
size_t hn_library_workspace(const hone_step *s);

/* Channels with their padding: up to the next 16 bytes. */
int64_t hn_library_padded(int64_t channels, hone_dtype dtype);

/* Whether an activation keeps zeros, as the padding of channels must be. */
bool hn_keeps_zero(hone_pw_op act, float alpha, float beta);

/* One number at to[at], rounded to `dtype` (f32, f16, bf16). */
void hn_library_put(void *to, int64_t at, hone_dtype dtype, float v);
/* Elements of a constant rounded to `dtype`, written from to[at] on. */
void hn_library_store(const hone_step_tensor *from, int64_t first, int64_t n, void *to, int64_t at,
                      hone_dtype dtype);

/* f32 operands that may not be rounded: no tensor core takes them. */
bool hn_library_exact(hone_dtype dtype, hone_math math);

/* Seconds of a product of m x n x k, of `bytes` in memory, that reaches `efficiency` of the rate once there
 * is enough of it. */
/* Seconds of functions (Gelu, Swish) in an epilogue that a library compiles, beyond the product. */
double hn_library_functions(const hone_step *s, const hone_machine *m);
double hn_library_seconds(const hone_machine *machine, hone_dtype dtype, hone_math math, double m, double n,
                          double k, double bytes, double efficiency);

#endif
