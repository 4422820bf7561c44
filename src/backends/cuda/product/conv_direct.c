#include "backends/cuda/product/conv_direct.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/product/conv_direct_args.h"
#include "backends/cuda/product/conv_weights_args.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "optimize/step/conv_attr.h"

static int64_t pitch_of(const hn_conv_attr *a) { return (a->groups * a->cout + 7) / 8 * 8; }
static int64_t taps_of(const hn_conv_attr *a) { return a->kernel[0] * a->kernel[1] * a->kernel[2]; }
static int64_t packed_of(const hn_conv_attr *a) { return taps_of(a) * a->cin * pitch_of(a); }

static bool describe(const hone_step *s, bool transposed, hn_conv_attr *a, hone_reason *why) {
  const hone_dtype from = s->input[0].desc.dtype, to = s->output[0].desc.dtype;
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_type(from)) return hn_refuse(why, "the input is %s", hone_dtype_name(from));
  if (to != from && to != HONE_DTYPE_F32) return hn_refuse(why, "the output is %s", hone_dtype_name(to));
  if (!(transposed ? hn_conv_transpose_attr_of(s, a, why) : hn_conv_attr_of(s, a, why))) return false;
  if (!hn_cuda_type(s->input[1].desc.dtype)) return hn_refuse(why, "weights are no floating-point numbers");
  if (hn_cuda_has(s, 2) && !hn_cuda_type(s->input[2].desc.dtype))
    return hn_refuse(why, "the bias is no vector");
  const hone_tensor_desc *y = &s->output[0].desc;
  const int64_t size = (int64_t)hone_dtype_size(y->dtype), vector = 16 / size;
  const int64_t padded = hn_fill_up(a->y.channels, vector);
  if (a->y.view.pixel < padded || a->y.view.pixel % 4)
    return hn_refuse(why, "the output's pixels do not hold whole vectors of channels");
  if (packed_of(a) > INT32_MAX) return hn_refuse(why, "more than 2^31 weights");
  if (a->y.batch * a->y.size[0] * a->y.size[1] * a->y.size[2] * (padded / 4) > INT32_MAX)
    return hn_refuse(why, "more than 2^31 outputs");
  for (int i = 0; i < 3; i++)
    if (a->kernel[i] > 4096 || a->dilation[i] > 65536 || a->stride[i] > 65536)
      return hn_refuse(why, "kernel, stride or dilation are too large");
  return hn_cuda_epilogue_accepts(s, why);
}

bool hn_cuda_conv_direct_accepts(const hone_step *s, const hone_machine *m,
                                 const hn_cuda_conv_direct_config *config, hone_reason *why) {
  (void)m;
  hn_conv_attr a;
  return describe(s, config->transposed, &a, why);
}

double hn_cuda_conv_direct_cost(const hone_step *s, const hone_machine *m,
                                const hn_cuda_conv_direct_config *config) {
  hn_conv_attr a;
  if (!describe(s, config->transposed, &a, NULL)) return HN_REFUSED_SECONDS;
  /* Every product loads both operands from the cache, and a thread's sum goes on 50 ns after the one before
   * (one H200). */
  const double whole = hn_cuda_seconds(m, s->cost.flops, m->peak_flops,
                                       hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s), 0.08),
               along = (double)(a.cin * taps_of(&a)) * 50e-9 + m->launch_s;
  return fmax(whole, along) + (s->input[1].constant ? 0 : m->launch_s);
}

hone_status hn_cuda_conv_direct_need(const hone_step *s, const hone_machine *m,
                                     const hn_cuda_conv_direct_config *config, hone_tactic_need *need,
                                     hone_error *error) {
  (void)m;
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, config->transposed, &a, &why)) return hn_not_described(s, &why, error);
  const size_t bytes = (size_t)packed_of(&a) * sizeof(float);
  if (s->input[1].constant)
    need->blob_bytes = bytes, need->packed = 1u << 1;
  else
    need->workspace_bytes = bytes;
  return HONE_OK;
}

hone_status hn_cuda_conv_direct_prepack(const hone_step *s, const hone_machine *m,
                                        const hn_cuda_conv_direct_config *config, void *blob,
                                        hone_error *error) {
  const bool transposed = config->transposed;
  (void)m;
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, transposed, &a, &why)) return hn_not_described(s, &why, error);
  const int64_t taps = taps_of(&a), pitch = pitch_of(&a);
  float *w = blob;
  if (!s->input[1].constant) return HONE_OK;
  for (int64_t g = 0; g < a.groups; g++)
    for (int64_t o = 0; o < a.cout; o++)
      for (int64_t k = 0; k < a.cin; k++)
        for (int64_t t = 0; t < taps; t++) {
          const int64_t filter = transposed ? (g * a.cin + k) * a.cout + o : (g * a.cout + o) * a.cin + k;
          hn_cuda_constant_f32(&s->input[1], filter * taps + t, 1,
                               w + (t * a.cin + k) * pitch + g * a.cout + o);
        }
  return HONE_OK;
}

/* Weights that are known only now, into the workspace as prepack would write them. */
static hone_status pack(const hone_step_run *r, const hn_conv_attr *a, bool transposed, hone_error *error) {
  const int64_t count = packed_of(a);
  const hn_conv_weights_args g = {.from = r->in[1],
                                  .to = r->workspace,
                                  .taps = (i32)taps_of(a),
                                  .cin = (i32)a->cin,
                                  .cout = (i32)a->cout,
                                  .channels = (i32)(a->groups * a->cout),
                                  .pitch = (i32)pitch_of(a),
                                  .transposed = transposed,
                                  .count = (u32)count};
  hn_str text = {0};
  hn_cuda_define_type(&text, r->step->input[1].desc.dtype);
  const hone_status status = hn_cuda_launch_line(hn_cuda_queue_of(r), "conv_weights", &text,
                                                 "hn_conv_weights", count, 128, &g, sizeof g, error);
  hn_str_free(&text);
  return status;
}

hone_status hn_cuda_conv_direct_run(const hone_step_run *r, const hn_cuda_conv_direct_config *config,
                                    hone_error *error) {
  const bool transposed = config->transposed;
  const hone_step *s = r->step;
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, transposed, &a, &why)) return hn_not_described(s, &why, error);
  const hone_dtype type = s->output[0].desc.dtype;
  const int64_t vector = 16 / (int64_t)hone_dtype_size(type);
  hn_conv_direct_args g = {.x = r->in[0], .y = r->out[0], .w = r->blob};
  if (!s->input[1].constant) {
    const hone_status packed = pack(r, &a, transposed, error);
    if (packed != HONE_OK) return packed;
    g.w = r->workspace;
  }
  const int64_t x_step[4] = {a.x.view.batch, a.x.view.slice, a.x.view.row, a.x.view.pixel};
  const int64_t y_step[4] = {a.y.view.batch, a.y.view.slice, a.y.view.row, a.y.view.pixel};
  for (int i = 0; i < 4; i++) g.x_step[i] = x_step[i], g.y_step[i] = y_step[i];
  const int64_t vectors = hn_fill_up(a.y.channels, vector) / 4;
  int64_t work = a.y.batch * vectors;
  for (int i = 0; i < 3; i++) {
    g.out[i] = hn_cuda_divisor((uint32_t)(a.y.size[i] > 0 ? a.y.size[i] : 1));
    g.in[i] = (i32)a.x.size[i], g.stride[i] = (i32)a.stride[i];
    g.dilation[i] = (i32)a.dilation[i], g.pad[i] = (i32)a.pad[i];
    work *= a.y.size[i];
  }
  g.vectors = hn_cuda_divisor((uint32_t)(vectors > 0 ? vectors : 1));
  g.cin = (i32)a.cin, g.cout = (i32)a.cout, g.channels = (i32)a.y.channels;
  g.w_pitch = (i32)pitch_of(&a), g.work = (u32)work;
  hn_cuda_epilogue_bind(r, 2, &g.epilogue);
  hn_str text = {0};
  hn_cuda_define_type(&text, s->input[0].desc.dtype);
  hn_str_printf(&text, "#define HN_OUT %s\n", hn_cuda_type(type));
  hn_str_printf(&text, "#define HN_KD %lld\n#define HN_KH %lld\n#define HN_KW %lld\n", (long long)a.kernel[0],
                (long long)a.kernel[1], (long long)a.kernel[2]);
  hn_str_printf(&text, "#define HN_TRANSPOSED %d\n#define HN_SHARED_GROUP %d\n", transposed,
                a.groups == 1 || a.cout % 4 == 0);
  hone_status status = hn_cuda_epilogue(s, 2, &text, error);
  if (!status)
    status = hn_cuda_launch_line(hn_cuda_queue_of(r), "conv_direct", &text, "hn_conv_direct", work, 128, &g,
                                 sizeof g, error);
  hn_str_free(&text);
  return status;
}
