/* cuBLASLt, opened when first wanted. Without cublasLt.h at build time HN_HAVE_CUBLASLT is 0, and there is
 * none. */
#ifndef HN_CUDA_DRIVER_DL_CUBLASLT_H
#define HN_CUDA_DRIVER_DL_CUBLASLT_H

#include "backends/cuda/driver/dl.h"

#ifndef HN_HAVE_CUBLASLT
#define HN_HAVE_CUBLASLT 0
#endif

#if HN_HAVE_CUBLASLT
#include <cublasLt.h>

#define HN_CUBLASLT_SYMBOLS(X)                                                                               \
  X(cublasLtGetVersion)                                                                                      \
  X(cublasLtGetStatusString)                                                                                 \
  X(cublasLtCreate)                                                                                          \
  X(cublasLtDestroy)                                                                                         \
  X(cublasLtMatmul)                                                                                          \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                          \
  X(cublasLtMatmulDescCreate)                                                                                \
  X(cublasLtMatmulDescDestroy)                                                                               \
  X(cublasLtMatmulDescSetAttribute)                                                                          \
  X(cublasLtMatrixLayoutCreate)                                                                              \
  X(cublasLtMatrixLayoutDestroy)                                                                             \
  X(cublasLtMatrixLayoutSetAttribute)                                                                        \
  X(cublasLtMatmulPreferenceCreate)                                                                          \
  X(cublasLtMatmulPreferenceDestroy)                                                                         \
  X(cublasLtMatmulPreferenceSetAttribute)

typedef struct hn_dl_cublaslt {
  HN_CUBLASLT_SYMBOLS(HN_DL_FIELD)
} hn_dl_cublaslt;

/* The table, NULL with the reason where the library, or a call in it, is missing. From any thread; opened
 * once and never closed. */
const hn_dl_cublaslt *hn_dl_cublaslt_get(hone_error *error);

/* Fails with cuBLASLt's own words. */
hone_status hn_cublaslt_fail(const hn_dl_cublaslt *api, cublasStatus_t status, const char *what,
                             hone_error *error);
#endif

/* "cuBLASLt 13.1.0" into buf; false, and an empty text, where there is none. */
bool hn_cublaslt_version(char *buf, size_t size);

#endif
