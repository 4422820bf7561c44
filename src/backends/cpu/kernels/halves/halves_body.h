/* The body of halves_<tier>.c. A rest shorter than a vector goes through a padded block, so that it is
 * computed by the same instructions. */
#include "backends/cpu/kernels/halves/halves.h"

#include <string.h>

#include "backends/cpu/kernels/vec/vec.h"
#include "base/fault.h"

/* Elements are 16 bits. */
#define HALF(P, I) ((char *)(uintptr_t)(P) + (I)*2)

#define FROM(NAME, LOAD)                                                                                     \
  static void NAME(float *dst, const void *src, size_t n) {                                                  \
    size_t i = 0;                                                                                            \
    for (; i + VEC_W <= n; i += VEC_W) v_store(dst + i, LOAD(HALF(src, i)));                                 \
    if (i == n) return;                                                                                      \
    uint16_t rest[VEC_W] = {0};                                                                              \
    memcpy(rest, HALF(src, i), (n - i) * sizeof *rest);                                                      \
    v_storen(dst + i, LOAD(rest), HN_FAULT("halves_tail") ? n - i - 1 : n - i);                              \
  }

#define TO(NAME, STORE)                                                                                      \
  static void NAME(void *dst, const float *src, size_t n) {                                                  \
    size_t i = 0;                                                                                            \
    for (; i + VEC_W <= n; i += VEC_W) STORE(HALF(dst, i), v_load(src + i));                                 \
    if (i == n) return;                                                                                      \
    uint16_t rest[VEC_W];                                                                                    \
    STORE(rest, v_loadn(src + i, n - i));                                                                    \
    memcpy(HALF(dst, i), rest, (n - i) * sizeof *rest);                                                      \
  }

FROM(from_f16, v_load_f16)
FROM(from_bf16, v_load_bf16)
TO(to_f16, v_store_f16)
TO(to_bf16, v_store_bf16)

static const struct hn_halves_ops table = {
    .from_f16 = from_f16, .from_bf16 = from_bf16, .to_f16 = to_f16, .to_bf16 = to_bf16};
