/* Plain loops for wider vectors: the same source compiled for the instruction sets that matter, chosen when
 * it is called. For work at load time that compilers vectorise by themselves and whose results must not
 * depend on the machine; what a run spends its time in are kernels (backends/cpu/kernels). */
#ifndef HN_BASE_WIDE_H
#define HN_BASE_WIDE_H

#include "base/cpuid.h"

/* Before the body: it becomes a part of each variant. */
#define HN_WIDE_BODY static inline __attribute__((always_inline))

/* Sanitizers watch every access by itself, so that nothing is wide, and what they watch is the same in every
 * variant: they have one, or compilers would instrument all of it three times. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HN_WIDE_VARIANTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HN_WIDE_VARIANTS 0
#endif
#endif
#ifndef HN_WIDE_VARIANTS
#define HN_WIDE_VARIANTS 1
#endif

/* Defines `type name(params)`, which calls body(args) as compiled for this processor. GCC at -O2 vectorises
 * loops whose trip count is a constant: write blocks. */
#if HN_WIDE_VARIANTS
#define HN_WIDE(type, name, body, params, args)                                                              \
  __attribute__((target("avx2"))) static type name##_avx2 params { return body args; }                       \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static type name##_avx512 params {           \
    return body args;                                                                                        \
  }                                                                                                          \
  static type name params {                                                                                  \
    switch (hn_cpuid_width()) {                                                                              \
    case HN_WIDTH_AVX512: return name##_avx512 args;                                                         \
    case HN_WIDTH_AVX2: return name##_avx2 args;                                                             \
    default: return body args;                                                                               \
    }                                                                                                        \
  }
#else
#define HN_WIDE(type, name, body, params, args)                                                              \
  static type name params { return body args; }
#endif

#endif
