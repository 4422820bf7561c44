#include "backends/cuda/libraries/cudnn_codes.h"

#include <string.h>

#include "backends/cuda/libraries/cudnn_answer.h"
#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/quantized/codes_sums.h"
#include "base/error.h"

typedef struct problem {
  hn_codes_sums q;
  hn_cudnn_spec spec;
} problem;

/* Channels innermost. */
static hn_cudnn_tensor image(hone_dtype type, int64_t images, int64_t channels, int64_t rows, int64_t pixels,
                             int64_t pixel, int64_t distance) {
  return (hn_cudnn_tensor){.dtype = type,
                           .dim = {images, channels, rows, pixels, 1},
                           .stride = {distance, 1, pixels * pixel, pixel, 1}};
}

/* Padding before as it is, behind as much as the output's size takes. */
static bool pad(hn_cudnn_spec *p, int i, int64_t before, int64_t out, int64_t kernel, int64_t in,
                hone_reason *why) {
  const int64_t least = (out - 1) * p->stride[i] + (kernel - 1) * p->dilation[i] + 1 - in - before;
  p->pad_before[i] = before, p->pad_after[i] = least > 0 ? least : 0;
  return p->pad_after[i] < least + p->stride[i] ||
         hn_refuse(why, "the output does not reach the input's end");
}

static bool describe(const hone_step *s, const hn_cudnn_codes_config *config, problem *x, hone_reason *why) {
  if (!hn_codes_sums_of_conv(s, config->sums, &x->q, why)) return false;
  const hn_codes_sums *q = &x->q;
  const hn_product_args *g = &q->p.args;
  hn_cudnn_spec *p = &x->spec;
  memset(p, 0, sizeof *p);
  p->rank = 4, p->math = HONE_MATH_TF32, p->workspace = hn_library_workspace(s);
  p->stride[0] = g->stride_y, p->stride[1] = g->stride_x;
  p->dilation[0] = g->dilation_y, p->dilation[1] = g->dilation_x;
  const int64_t c = g->tap, pixel = q->copied ? c : q->row;
  const int64_t distance = q->copied ? q->image[1] * q->image[2] * c : g->image;
  const hn_cudnn_tensor first[] = {
      image(HONE_DTYPE_I8, q->image[0], c, q->image[1], q->image[2], pixel, distance),
      image(HONE_DTYPE_I8, q->columns, c, g->kernel_y, g->kernel_x, c, q->depth),
      image(config->sums, q->image[0], q->columns, g->grid_y, g->grid_x, q->columns,
            (int64_t)g->grid_y * g->grid_x * q->columns)};
  for (int i = 0; i < 3; i++) hn_cudnn_add_tensor(p, &first[i]);
  return pad(p, 0, q->copied ? 0 : q->pad[0], g->grid_y, g->kernel_y, q->image[1], why) &&
         pad(p, 1, q->copied ? 0 : q->pad[1], g->grid_x, g->kernel_x, q->image[2], why);
}

static hone_status describe_again(const hone_step *s, const hn_cudnn_codes_config *config, problem *x,
                                  hone_error *error) {
  hone_reason why = {""};
  return describe(s, config, x, &why) ? HONE_OK
                                      : hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
}

bool hn_cudnn_codes_accepts(const hone_step *s, const hone_machine *m, const hn_cudnn_codes_config *config,
                            hone_reason *why) {
  problem x;
  if (!(m->libraries & HONE_LIB_CUDNN)) return hn_refuse(why, "cuDNN is not on this machine");
  return describe(s, config, &x, why) && hn_cudnn_answers(&x.spec, m, config->candidate, why);
}

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_cudnn_codes_cost(const hone_step *s, const hone_machine *m, const hn_cudnn_codes_config *config) {
  problem x;
  if (!describe(s, config, &x, NULL)) return 1e9;
  const hn_product_args *g = &x.q.p.args;
  const double rows = (double)x.q.rows, columns = (double)x.q.columns, depth = (double)x.q.depth;
  const double bytes =
      (double)(x.q.image[0] * x.q.image[1] * x.q.image[2] * g->tap) + columns * depth + 4 * rows * columns;
  return (hn_library_seconds(m, HONE_DTYPE_I8, HONE_MATH_TF32, rows, columns, depth, bytes, 0.4) +
          hn_codes_sums_seconds(m, &x.q)) *
         (1 + 0.02 * config->candidate);
}

hone_status hn_cudnn_codes_need(const hone_step *s, const hone_machine *m,
                                const hn_cudnn_codes_config *config, hone_tactic_need *need,
                                hone_error *error) {
  problem x;
  (void)m;
  hone_status status = describe_again(s, config, &x, error);
  if (status) return status;
  need->blob_bytes = hn_codes_sums_blob(&x.q).bytes;
  need->packed = 1u << HN_QLINEAR_W;
  need->workspace_bytes = x.q.at_library + x.spec.workspace;
  return HONE_OK;
}

hone_status hn_cudnn_codes_prepack(const hone_step *s, const hone_machine *m,
                                   const hn_cudnn_codes_config *config, void *blob, hone_error *error) {
  problem x;
  (void)m;
  hone_status status = describe_again(s, config, &x, error);
  return status ? status : hn_codes_sums_pack(s, &x.q, blob, error);
}

void hn_cudnn_codes_work(const hone_step *s, const hone_machine *m, const hn_cudnn_codes_config *config,
                         hone_work *work) {
  (void)s, (void)m, (void)config;
  work->arithmetic = HONE_ARITHMETIC_INT8;
}

hone_status hn_cudnn_codes_run(const hone_step_run *run, const hn_cudnn_codes_config *config,
                               hone_error *error) {
  problem x;
  const void *codes = NULL;
  hone_status status = describe_again(run->step, config, &x, error);
  if (!status) status = hn_codes_sums_begin(run, &x.q, &codes, error);
  if (status) return status;
  char *work = run->workspace;
  void *const data[HN_CUDNN_TENSORS] = {(void *)(uintptr_t)codes, (void *)(uintptr_t)run->blob,
                                        work + x.q.at_sums};
  status =
      hn_cudnn_launch(hn_cuda_queue_of(run), &x.spec, config->candidate, data, work + x.q.at_library, error);
  return status ? status : hn_codes_sums_end(run, &x.q, error);
}
