/* A cuBLASLt for machines without a GPU: the calls that hone makes, on the fake driver's streams. It refuses
 * what the documentation forbids, and offers two algorithms; the second wants, and spoils, its workspace. */
#include "fake_library.h"

#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
  cudaDataType_t type;
  int64_t rows, cols, ld, batch;
  int32_t batches;
} layout;

typedef struct product {
  bool codes; /* i8 in i32 */
  cublasOperation_t ta, tb;
  cublasLtEpilogue_t epilogue;
  int32_t bias_type;
  const void *bias;
  const float *a_scale, *b_scale; /* of e4m3; on the device */
} product;

typedef struct work {
  product p;
  layout a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void *at_d, *workspace;
  size_t spoil;
  float alpha, beta;
} work;

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported (fake)" : "invalid value (fake)";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) {
  *h = malloc(8);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
  free(h);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  const bool codes = compute == CUBLAS_COMPUTE_32I;
  if ((!codes && compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) ||
      scale != (codes ? CUDA_R_32I : CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  product *p = calloc(1, sizeof *p);
  p->codes = codes;
  p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  *out = (cublasLtMatmulDesc_t)(void *)p;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  free(d);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size) {
  product *p = (product *)(void *)d;
  switch (name) {
  case CUBLASLT_MATMUL_DESC_TRANSA: memcpy(&p->ta, value, size); break;
  case CUBLASLT_MATMUL_DESC_TRANSB: memcpy(&p->tb, value, size); break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE: memcpy(&p->epilogue, value, size); break;
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: memcpy(&p->bias_type, value, size); break;
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER: memcpy(&p->bias, value, size); break;
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: memcpy(&p->a_scale, value, size); break;
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: memcpy(&p->b_scale, value, size); break;
  default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  if (!rows || !cols || ld < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
  layout *l = calloc(1, sizeof *l);
  *l = (layout){.type = type, .rows = (int64_t)rows, .cols = (int64_t)cols, .ld = ld, .batches = 1};
  *out = (cublasLtMatrixLayout_t)(void *)l;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  free(l);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t d,
                                                cublasLtMatrixLayoutAttribute_t name, const void *value,
                                                size_t size) {
  layout *l = (layout *)(void *)d;
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    memcpy(&l->batches, value, size);
  else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    memcpy(&l->batch, value, size);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  *out = (cublasLtMatmulPreference_t)calloc(1, sizeof(size_t));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  free(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t size) {
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) memcpy((void *)p, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

/* What the documentation says of integers: A transposed and B not, all distances and m and k multiples of 4,
 * no epilogue. */
static bool codes_fit(const product *p, const layout *a, const layout *b, const layout *c, const layout *d) {
  return a->type == CUDA_R_8I && b->type == CUDA_R_8I && c->type == CUDA_R_32I && p->ta == CUBLAS_OP_T &&
         p->tb == CUBLAS_OP_N && p->epilogue == CUBLASLT_EPILOGUE_DEFAULT && d->rows % 4 == 0 &&
         a->rows % 4 == 0 && a->ld % 4 == 0 && b->ld % 4 == 0 && c->ld % 4 == 0 && d->ld % 4 == 0;
}

/* And of e4m3: the same form, whole sixteens, results of 16 or 32 bits. */
static bool e4m3_fits(const product *p, const layout *a, const layout *b, const layout *d) {
  return p->ta == CUBLAS_OP_T && p->tb == CUBLAS_OP_N && d->rows % 16 == 0 && a->rows % 16 == 0 &&
         a->ld % 16 == 0 && b->ld % 16 == 0 && d->ld * (d->type == CUDA_R_32F ? 4 : 2) % 16 == 0 &&
         p->a_scale && p->b_scale &&
         (d->type == CUDA_R_32F || d->type == CUDA_R_16F || d->type == CUDA_R_16BF);
}

/* Shapes as the operation sees them: op(A) m x k, op(B) k x n, D m x n, all column-major. */
static cublasStatus_t check(const product *p, const layout *a, const layout *b, const layout *c,
                            const layout *d) {
  const int64_t m = d->rows, n = d->cols, k = p->ta == CUBLAS_OP_T ? a->rows : a->cols;
  if ((p->ta == CUBLAS_OP_T ? a->cols : a->rows) != m || (p->tb == CUBLAS_OP_T ? b->cols : b->rows) != k ||
      (p->tb == CUBLAS_OP_T ? b->rows : b->cols) != n || c->rows != m || c->cols != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (a->batches != d->batches || b->batches != d->batches || c->batches != d->batches)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (a->type != b->type || c->type != d->type) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a->type == CUDA_R_8F_E4M3 && !e4m3_fits(p, a, b, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p->codes != (a->type == CUDA_R_8I)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p->codes && !codes_fit(p, a, b, c, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p->epilogue & CUBLASLT_EPILOGUE_BIAS && (!p->bias || p->bias_type != (int32_t)d->type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t pref, int wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *n) {
  size_t room;
  memcpy(&room, (const void *)pref, sizeof room);
  cublasStatus_t s = check((product *)(void *)desc, (layout *)(void *)a, (layout *)(void *)b,
                           (layout *)(void *)c, (layout *)(void *)d);
  *n = 0;
  if (!h || s != CUBLAS_STATUS_SUCCESS) return s;
  for (int i = 0; i < 4 && i < wanted; i++) { /* as many as tactics ask for */
    memset(&found[i], 0, sizeof found[i]);
    found[i].algo.data[0] = (uint64_t)i;
    found[i].workspaceSize = i ? 1000 : 0;
    found[i].state = found[i].workspaceSize <= room ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    *n = i + 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static float at(const layout *l, const void *p, int64_t batch, int64_t row, int64_t col, bool turned) {
  return fake_load(p, l->type, batch * l->batch + (turned ? col + row * l->ld : row + col * l->ld));
}

static void multiply_codes(const work *w) {
  memset(w->workspace, 0xa5, w->spoil);
  for (int64_t n = 0; n < w->d.cols; n++)
    for (int64_t m = 0; m < w->d.rows; m++) {
      int32_t sum = 0;
      const int8_t *a = (const int8_t *)w->at_a + m * w->a.ld, *b = (const int8_t *)w->at_b + n * w->b.ld;
      for (int64_t x = 0; x < w->a.rows; x++) sum += a[x] * b[x];
      ((int32_t *)w->at_d)[m + n * w->d.ld] = sum;
    }
}

static void multiply(const void *args) {
  const work *w = args;
  if (w->p.codes) {
    multiply_codes(w);
    return;
  }
  const int64_t k = w->p.ta == CUBLAS_OP_T ? w->a.rows : w->a.cols;
  memset(w->workspace, 0xa5, w->spoil);
  for (int64_t i = 0; i < w->d.batches; i++)
    for (int64_t n = 0; n < w->d.cols; n++)
      for (int64_t m = 0; m < w->d.rows; m++) {
        double sum = 0;
        for (int64_t x = 0; x < k; x++)
          sum += (double)at(&w->a, w->at_a, i, m, x, w->p.ta == CUBLAS_OP_T) *
                 (double)at(&w->b, w->at_b, i, x, n, w->p.tb == CUBLAS_OP_T);
        double v = (double)w->alpha * sum;
        if (w->a.type == CUDA_R_8F_E4M3) v *= (double)*w->p.a_scale * (double)*w->p.b_scale;
        if (w->beta != 0) v += (double)w->beta * (double)at(&w->c, w->at_c, i, m, n, false);
        if (w->p.epilogue & CUBLASLT_EPILOGUE_BIAS)
          v += (double)fake_load(w->p.bias, (cudaDataType_t)w->p.bias_type, m);
        if (w->p.epilogue & CUBLASLT_EPILOGUE_RELU) v = v > 0 ? v : 0;
        if (w->p.epilogue & CUBLASLT_EPILOGUE_GELU)
          v = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
        fake_store(w->at_d, w->d.type, i * w->d.batch + m + n * w->d.ld, (float)v);
      }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb,
                              const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *d,
                              cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t bytes, cudaStream_t stream) {
  const product *p = (product *)(void *)desc;
  work w = {*p,
            *(layout *)(void *)la,
            *(layout *)(void *)lb,
            *(layout *)(void *)lc,
            *(layout *)(void *)ld,
            a,
            b,
            c,
            d,
            workspace,
            algo->data[0] ? 1000 : 0,
            p->codes ? (float)*(const int32_t *)alpha : *(const float *)alpha,
            p->codes ? (float)*(const int32_t *)beta : *(const float *)beta};
  const uintptr_t all = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | (uintptr_t)workspace;
  cublasStatus_t s = check(&w.p, &w.a, &w.b, &w.c, &w.d);
  if (s != CUBLAS_STATUS_SUCCESS || !h) return s;
  if (p->codes && (w.alpha != 1 || w.beta != 0)) return CUBLAS_STATUS_NOT_SUPPORTED; /* by this fake */
  if (all % 16 || bytes < w.spoil) return CUBLAS_STATUS_INVALID_VALUE;
  return fakeCall((CUstream)stream, multiply, &w, sizeof w) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}
