/* How the kernel for the GPU is launched: a block for each 8 queries of a batch. */
#include "softmax_attention_op.h"

#include <hone/cuda.h>

typedef struct attention_args { /* the same as in softmax_attention_cuda.cu */
  const void *q, *k, *v, *mask;
  void *y;
  long long m, d, s, e, pieces, batch[2], stride[4];
  float scale;
} attention_args;

static hone_status too_many(hone_error *error) {
  if (error) error->status = HONE_ERROR_UNSUPPORTED;
  return HONE_ERROR_UNSUPPORTED;
}

hone_status softmax_attention_cuda(const softmax_attention_attrs *attrs, const hone_step_run *run,
                                   const char *text, hone_error *error) {
  const hone_step_tensor *in = run->step->input;
  const hone_tensor_desc *q = &in[0].desc, *v = &in[2].desc,
                         *mask = run->step->n_inputs > 3 ? &in[3].desc : NULL;
  const int32_t n = q->rank;
  attention_args a = {.q = run->in[0],
                      .k = run->in[1],
                      .v = run->in[2],
                      .y = run->out[0],
                      .batch = {1, 1},
                      .scale = attrs->scale};
  long long batches = 1, stride = 1;
  a.m = q->dim[n - 2], a.d = q->dim[n - 1], a.s = v->dim[n - 2], a.e = v->dim[n - 1];
  a.pieces = (a.m + 7) / 8;
  for (int32_t i = 0; i < n - 2; i++) batches *= q->dim[i];
  if (mask && run->in[3]) {
    if (n > 4) return too_many(error);
    a.mask = run->in[3];
    for (int32_t i = 3, k = mask->rank - 1; k >= 0; i--, k--) {
      a.stride[i] = mask->dim[k] == 1 ? 0 : stride;
      stride *= mask->dim[k];
    }
  }
  if (n > 2) a.batch[1] = q->dim[n - 3];
  const hone_dtype type = run->step->output[0].desc.dtype;
  const hone_cuda_kernel kernel = {
      HONE_DESC_HEAD(hone_cuda_kernel),
      .head = type == HONE_DTYPE_F16    ? "#define LOAD hn_load_f16\n#define STORE hn_store_f16\n"
              : type == HONE_DTYPE_BF16 ? "#define LOAD hn_load_bf16\n#define STORE hn_store_bf16\n"
                                        : "#define LOAD hn_load_f32\n#define STORE hn_store_f32\n",
      .text = text,
      .entry = "softmax_attention",
      .grid = {(uint32_t)(batches * a.pieces), 1, 1},
      .threads = 128};
  if (batches * a.pieces > 0x7fffffff) return too_many(error);
  return hone_desc_count(&run->step->output[0].desc) > 0 ? hone_cuda_launch(run, &kernel, &a, sizeof a, error)
                                                         : HONE_OK;
}
