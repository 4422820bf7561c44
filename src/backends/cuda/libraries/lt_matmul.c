#include "backends/cuda/libraries/lt_matmul.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/driver/dl_cublaslt.h"
#include "base/error.h"

char *hn_lt_key(const hn_lt_spec *s, char *buf, size_t size) {
  const hn_lt_matrix *x[] = {&s->a, &s->b, &s->c, &s->d};
  int n = snprintf(buf, size, "lt:%d>%d:m%d:%lldx%lldx%lldx%lld:%a:%a:b%d:a%d:w%zu", (int)s->dtype,
                   (int)s->out, (int)s->math, (long long)s->batches, (long long)s->m, (long long)s->n,
                   (long long)s->k, (double)s->alpha, (double)s->beta, s->bias, (int)s->act, s->workspace);
  for (int i = 0; i < 4 && n > 0 && (size_t)n < size; i++)
    n += snprintf(buf + n, size - (size_t)n, ":%lld/%lld%s", (long long)x[i]->row, (long long)x[i]->batch,
                  x[i]->turned ? "t" : "");
  return buf;
}

#if HN_HAVE_CUBLASLT

struct hn_lt_plan {
  hn_lt_spec spec;
  const hn_dl_cublaslt *api;
  uint32_t n;
  cublasLtMatmulAlgo_t algo[HN_LT_CANDIDATES];
};

/* What one call wants; the bias' address is part of the description. */
typedef struct call {
  const hn_dl_cublaslt *api;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, c, d;
} call;

static void call_close(call *x) {
  cublasLtMatrixLayout_t *layouts[] = {&x->a, &x->b, &x->c, &x->d};
  for (int i = 0; i < 4; i++)
    if (*layouts[i]) x->api->cublasLtMatrixLayoutDestroy(*layouts[i]);
  if (x->product) x->api->cublasLtMatmulDescDestroy(x->product);
}

static cudaDataType_t type_of(hone_dtype d) {
  switch (d) {
  case HONE_DTYPE_F16: return CUDA_R_16F;
  case HONE_DTYPE_BF16: return CUDA_R_16BF;
  case HONE_DTYPE_I8: return CUDA_R_8I;
  case HONE_DTYPE_F8E4M3FN: return CUDA_R_8F_E4M3;
  default: return CUDA_R_32F;
  }
}

/* Of C and D. */
static cudaDataType_t sum_type(const hn_lt_spec *s) {
  return s->dtype == HONE_DTYPE_I8 ? CUDA_R_32I : type_of(s->out ? s->out : s->dtype);
}

#define TRY(api, what, expr)                                                                                 \
  do {                                                                                                       \
    cublasStatus_t try_status = (expr);                                                                      \
    if (try_status != CUBLAS_STATUS_SUCCESS) return hn_cublaslt_fail(api, try_status, what, error);          \
  } while (0)

/* cuBLASLt's matrices are column-major: a row-major matrix is its transpose there. rows and cols are those of
 * the row-major matrix as the product sees it. */
static hone_status layout(const hn_lt_spec *s, const hn_dl_cublaslt *api, const hn_lt_matrix *x,
                          cudaDataType_t type, int64_t rows, int64_t cols, cublasLtMatrixLayout_t *out,
                          hone_error *error) {
  const int32_t batches = (int32_t)s->batches;
  const int64_t down = x->turned ? rows : cols, across = x->turned ? cols : rows;
  TRY(api, "describing a matrix",
      api->cublasLtMatrixLayoutCreate(out, type, (uint64_t)down, (uint64_t)across, x->row));
  if (batches <= 1) return HONE_OK;
  TRY(api, "describing a batch",
      api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches,
                                            sizeof batches));
  TRY(api, "describing a batch",
      api->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x->batch,
                                            sizeof x->batch));
  return HONE_OK;
}

static hone_status describe(const hn_lt_spec *s, const hn_dl_cublaslt *api, const hn_lt_place *at, call *out,
                            hone_error *error) {
  const bool tf32 = s->dtype == HONE_DTYPE_F32 && s->math >= HONE_MATH_TF32,
             codes = s->dtype == HONE_DTYPE_I8;
  const cudaDataType_t type = type_of(s->dtype), sums = sum_type(s);
  static const cublasLtEpilogue_t epilogues[3][2] = {{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
                                                     {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
                                                     {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS}};
  const cublasLtEpilogue_t epilogue = epilogues[s->act][s->bias];
  const cublasOperation_t ta = s->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                          tb = s->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int32_t bias_type = (int32_t)sums;
  const bool scaled = s->dtype == HONE_DTYPE_F8E4M3FN;
  const struct {
    cublasLtMatmulDescAttributes_t name;
    const void *value;
    size_t size;
    bool wanted;
  } attr[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta, true},
              {CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb, true},
              {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, true},
              {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type, s->bias},
              {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &at->b_scale, sizeof at->b_scale, scaled},
              {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &at->a_scale, sizeof at->a_scale, scaled},
              {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at->bias, sizeof at->bias, s->bias}};
  *out = (call){.api = api};
  TRY(api, "describing a product",
      api->cublasLtMatmulDescCreate(&out->product,
                                    codes  ? CUBLAS_COMPUTE_32I
                                    : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                           : CUBLAS_COMPUTE_32F,
                                    codes ? CUDA_R_32I : CUDA_R_32F));
  for (size_t i = 0; i < sizeof attr / sizeof *attr; i++)
    if (attr[i].wanted)
      TRY(api, "describing a product",
          api->cublasLtMatmulDescSetAttribute(out->product, attr[i].name, attr[i].value, attr[i].size));
  /* The transposed product: D' = B' A'. */
  hone_status status = layout(s, api, &s->b, type, s->k, s->n, &out->a, error);
  if (!status) status = layout(s, api, &s->a, type, s->m, s->k, &out->b, error);
  if (!status) status = layout(s, api, s->beta != 0 ? &s->c : &s->d, sums, s->m, s->n, &out->c, error);
  if (!status) status = layout(s, api, &s->d, sums, s->m, s->n, &out->d, error);
  return status;
}

static hone_status preference(const hn_lt_spec *s, const hn_dl_cublaslt *api, cublasLtMatmulPreference_t p,
                              hone_error *error) {
  /* Partial sums of a product that is cut along K stay f32. */
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                 align = 16;
  const uint64_t workspace = s->workspace;
  TRY(api, "stating preferences",
      api->cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                sizeof workspace));
  TRY(api, "stating preferences",
      api->cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                sizeof schemes));
  static const cublasLtMatmulPreferenceAttributes_t operand[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; i++)
    TRY(api, "stating preferences",
        api->cublasLtMatmulPreferenceSetAttribute(p, operand[i], &align, sizeof align));
  return HONE_OK;
}

static hone_status choose(hn_lt_plan *plan, const call *x, void *handle, cublasLtMatmulPreference_t p,
                          hone_error *error) {
  const hn_dl_cublaslt *api = plan->api;
  cublasLtMatmulHeuristicResult_t found[HN_LT_CANDIDATES];
  int n = 0;
  hone_status status = preference(&plan->spec, api, p, error);
  if (status) return status;
  TRY(api, "asking the heuristics",
      api->cublasLtMatmulAlgoGetHeuristic(handle, x->product, x->a, x->b, x->c, x->d, p, HN_LT_CANDIDATES,
                                          found, &n));
  for (int i = 0; i < n; i++)
    if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= plan->spec.workspace)
      plan->algo[plan->n++] = found[i].algo;
  return plan->n ? HONE_OK
                 : hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuBLASLt has no algorithm for this product");
}

hone_status hn_lt_plan_open(const hn_lt_spec *spec, void *handle, hn_lt_plan **out, hone_error *error) {
  *out = NULL;
  const hn_dl_cublaslt *api = hn_dl_cublaslt_get(error);
  if (!api) return HONE_ERROR_MISSING;
  hn_lt_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return hn_fail_memory(error, sizeof *plan, "a cuBLASLt plan");
  plan->spec = *spec, plan->api = api;
  call x;
  cublasLtMatmulPreference_t p = NULL;
  /* The heuristics look at addresses for their alignment alone. */
  const void *some = (const void *)(uintptr_t)256;
  const hn_lt_place place = {.bias = some, .a_scale = some, .b_scale = some};
  hone_status status = describe(spec, api, &place, &x, error);
  if (!status) {
    cublasStatus_t s = api->cublasLtMatmulPreferenceCreate(&p);
    status = s == CUBLAS_STATUS_SUCCESS ? choose(plan, &x, handle, p, error)
                                        : hn_cublaslt_fail(api, s, "stating preferences", error);
  }
  if (p) api->cublasLtMatmulPreferenceDestroy(p);
  call_close(&x);
  if (status)
    free(plan);
  else
    *out = plan;
  return status;
}

void hn_lt_plan_close(void *plan) { free(plan); }

uint32_t hn_lt_plan_candidates(const hn_lt_plan *plan) { return plan->n; }

hone_status hn_lt_plan_run(const hn_lt_plan *plan, uint32_t candidate, void *handle, const hn_lt_place *at,
                           void *stream, hone_error *error) {
  const hn_dl_cublaslt *api = plan->api;
  const hn_lt_spec *s = &plan->spec;
  const int32_t one = 1, none = 0;
  const bool codes = s->dtype == HONE_DTYPE_I8;
  const void *alpha = codes ? (const void *)&one : &s->alpha, *beta = codes ? (const void *)&none : &s->beta;
  call x;
  hone_status status = describe(s, api, at, &x, error);
  if (!status) {
    cublasStatus_t done = api->cublasLtMatmul(
        handle, x.product, alpha, at->b, x.a, at->a, x.b, beta, s->beta != 0 ? at->c : at->d, x.c, at->d, x.d,
        &plan->algo[candidate], at->workspace, s->workspace, (cudaStream_t)stream);
    if (done != CUBLAS_STATUS_SUCCESS) status = hn_cublaslt_fail(api, done, "launching a product", error);
  }
  call_close(&x);
  return status;
}

#endif
