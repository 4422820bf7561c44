/* Depthwise Conv (one filter a channel) of one or two dimensions, channels-last: depthwise_point.cu
 * and depthwise_rows.cu, by what the step offers of parallelism and reuse. */
#include "backends/cuda/product/depthwise.h"

#include <string.h>

#include "backends/cuda/device/depthwise_args.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

bool hn_cuda_depthwise_of(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!hn_cuda_stored(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  if (a->cin != 1 || a->cout != 1)
    return hn_refuse(why, "not depthwise: %lld inputs and %lld outputs a group", (long long)a->cin,
                     (long long)a->cout);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (!s->input[1].constant || !hn_cuda_type(s->input[1].desc.dtype))
    return hn_refuse(why, "weights are not constant numbers of a floating type");
  if (hn_cuda_has(s, 2) && !hn_cuda_type(s->input[2].desc.dtype))
    return hn_refuse(why, "the bias is no vector of a floating type");
  if (a->kernel[1] * a->kernel[2] > 1024) return hn_refuse(why, "more than 1024 taps");
  const int64_t size = (int64_t)hone_dtype_size(s->input[0].desc.dtype), vector = 16 / size;
  const int64_t padded = hn_fill_up(a->groups, vector);
  if (a->x.view.pixel < padded || a->y.view.pixel < padded || a->x.view.pixel % vector ||
      a->y.view.pixel % vector || a->x.view.row % vector || a->y.view.row % vector)
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  if (a->x.view.batch * size > INT32_MAX || a->y.view.batch * size > INT32_MAX)
    return hn_refuse(why, "an image of more than 2 GiB");
  return hn_cuda_epilogue_accepts(s, why);
}

/* How a step is run. */
typedef struct plan {
  const char *text, *entry;
  int64_t v, tw;            /* channels and output pixels of a row that a thread makes */
  int64_t rows;             /* of a strip */
  int64_t together;         /* rows of the kernel whose pixels a thread has on their way */
  uint32_t threads, blocks; /* of a block; resident ones that the compiler is to allow for */
  bool apart;               /* x or y lie at odd addresses */
} plan;

/* Measured on an H200: strips of rows where they fill the device, else a thread for few pixels. Half-width
 * vectors of f16 leave registers for four pixels a thread. */
static plan choose(const hone_machine *m, const hn_conv_attr *a, bool apart) {
  const int64_t threads = hn_div_up(a->groups, 4), h = a->y.size[1], w = a->y.size[2];
  const int64_t processors = m->processors ? m->processors : 108, taps = a->kernel[1] * a->kernel[2];
  const bool near = a->dilation[1] == 1 && a->dilation[2] == 1 && a->stride[1] <= 2 && a->stride[2] <= 2 &&
                    a->kernel[1] > 1 && taps <= 25;
  plan p = {.text = "depthwise_point",
            .entry = "hn_depthwise_point",
            .v = 4,
            .tw = 2,
            .threads = 128,
            .blocks = 5,
            .apart = apart};
  if (taps > 9) p.blocks = 4;
  if (w < 2) p.tw = 1;
  /* A row after the other takes as many latencies as there are rows; of few threads each may have more
   * registers. */
  const int64_t columns =
      a->dilation[2] == 1 ? (p.tw - 1) * a->stride[2] + a->kernel[2] : p.tw * a->kernel[2];
  p.together = a->kernel[1] * columns <= 16 ? a->kernel[1] : 1;
  if (p.together == 1 && a->x.batch * h * hn_div_up(w, p.tw) * threads <= processors * 768 && columns <= 16) {
    p.blocks = 3;
    p.together = a->kernel[1] < 32 / columns ? a->kernel[1] : 32 / columns;
  }
  if (!near || a->x.batch * h * hn_div_up(w, 4) * threads < processors * 384 * 14) return p;
  p.text = "depthwise_rows", p.entry = "hn_depthwise_rows";
  p.tw = taps > 9 ? 2 : 4, p.blocks = taps > 9 ? 2 : 3;
  p.rows = h < 14 ? h : 14;
  return p;
}

int hn_cuda_depthwise_bias(const hone_step *s) {
  return hn_cuda_has(s, 2) && s->input[2].constant ? HN_CUDA_NO_BIAS : 2;
}

static hone_status prefix(const hone_step *s, const hn_conv_attr *a, const plan *p, hn_str *t,
                          hone_error *error) {
  hn_cuda_define_type(t, s->output[0].desc.dtype);
  hn_str_printf(t,
                "#define HN_V %d\n#define HN_TW %d\n#define HN_THREADS %u\n"
                "#define HN_BLOCKS %u\n",
                (int)p->v, (int)p->tw, p->threads, p->blocks);
  hn_str_printf(t, "#define HN_KH %lld\n#define HN_KW %lld\n", (long long)a->kernel[1],
                (long long)a->kernel[2]);
  hn_str_printf(t, "#define HN_SH %lld\n#define HN_SW %lld\n", (long long)a->stride[1],
                (long long)a->stride[2]);
  hn_str_printf(t, "#define HN_DH %lld\n#define HN_DW %lld\n", (long long)a->dilation[1],
                (long long)a->dilation[2]);
  hn_str_printf(t, "#define HN_ROWS %d\n", (int)p->together);
  if (p->apart) hn_str_puts(t, "#define HN_APART\n");
  return hn_cuda_epilogue(s, hn_cuda_depthwise_bias(s), t, error);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  (void)m;
  return hn_cuda_depthwise_of(s, &a, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops, hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s), 0.7);
}

hone_status hn_cuda_depthwise_weights(const hone_step *s, const hn_conv_attr *a, int64_t block, float *to,
                                      hone_error *error) {
  const int64_t taps = a->kernel[1] * a->kernel[2];
  float row[1024];
  for (int64_t c = 0; c < a->groups; c++) {
    float *w = to + c / block * (taps + 1) * block + c % block;
    if (!hn_cuda_constant_f32(&s->input[1], c * taps, taps, row))
      return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise: weights of an odd type");
    for (int64_t t = 0; t < taps; t++) w[t * block] = row[t];
    if (hn_cuda_depthwise_bias(s) == HN_CUDA_NO_BIAS)
      hn_cuda_constant_f32(&s->input[2], c, 1, w + taps * block);
  }
  return HONE_OK;
}

static int64_t tap_pitch(const hn_conv_attr *a) { return hn_fill_up(a->groups, 8); }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  hone_reason why = {""};
  (void)m;
  if (!hn_cuda_depthwise_of(s, &a, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise: %s", why.text);
  n->blob_bytes = (size_t)((a.kernel[1] * a.kernel[2] + 1) * tap_pitch(&a)) * sizeof(float);
  n->packed = 1u << 1;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_attr a;
  hone_reason why = {""};
  (void)m;
  if (!hn_cuda_depthwise_of(s, &a, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise: %s", why.text);
  return hn_cuda_depthwise_weights(s, &a, tap_pitch(&a), blob, error);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hn_conv_attr a;
  hone_reason why = {""};
  if (!hn_cuda_depthwise_of(s, &a, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "depthwise: %s", why.text);
  const bool apart = ((uintptr_t)r->in[0] | (uintptr_t)r->out[0]) % 16 != 0;
  const plan p = choose(hn_cuda_machine(q), &a, apart);
  const int64_t size = (int64_t)hone_dtype_size(s->input[0].desc.dtype);
  hn_depthwise_args g = {.x = r->in[0], .y = r->out[0], .w = r->blob};
  g.x_image = a.x.view.batch * size, g.x_row = a.x.view.row * size, g.x_pixel = (i32)(a.x.view.pixel * size);
  g.y_image = a.y.view.batch * size, g.y_row = a.y.view.row * size, g.y_pixel = (i32)(a.y.view.pixel * size);
  g.w_tap = (i32)tap_pitch(&a), g.channels = (i32)a.groups;
  g.vectors = (i32)hn_div_up(a.groups * size, 16), g.threads = (i32)(g.vectors * 16 / size / p.v);
  g.in_h = (i32)a.x.size[1], g.in_w = (i32)a.x.size[2];
  g.out_h = (i32)a.y.size[1], g.out_w = (i32)a.y.size[2];
  g.pad_h = (i32)a.pad[1], g.pad_w = (i32)a.pad[2];
  g.batch = (i32)a.x.batch;
  g.tiles = (i32)hn_div_up(g.out_w, p.tw);
  g.rows = (i32)(p.rows ? p.rows : 1), g.strips = (i32)hn_div_up(g.out_h, g.rows);
  hn_cuda_epilogue_bind(r, hn_cuda_depthwise_bias(s), &g.epilogue);
  int64_t work = (int64_t)g.threads * g.tiles * g.strips * g.batch;
  if (work > UINT32_MAX) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "depthwise: too many elements");
  g.work = (u32)work;
  hn_str text = {0};
  hone_status status = prefix(s, &a, &p, &text, error);
  if (!status && work > 0) {
    const hn_cuda_kernel kernel = {p.text, text.ptr, p.entry};
    const hn_cuda_shape shape = {
        .grid = {(uint32_t)hn_div_up(work, p.threads), 1, 1}, .threads = p.threads, .overlap = true};
    status = hn_cuda_launch(q, &kernel, &shape, &g, sizeof g, error);
  }
  hn_str_free(&text);
  return status;
}

HN_TACTIC(cuda, depthwise, "Conv", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
