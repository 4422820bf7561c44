/* QLinearConv with one filter a channel, of one or two dimensions, channels-last (codes_depthwise.cu). */
#include "backends/cuda/quantized/codes_depthwise.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/quantized/codes_depthwise_args.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

typedef struct problem {
  hn_codes c;
  hn_conv_attr a;
  int64_t pixels, rows; /* of the output that a thread makes: of a row; below each other */
  int64_t stored;       /* channels of y with their padding */
} problem;

static int64_t threads_of(const problem *q) {
  const hn_conv_attr *a = &q->a;
  return a->y.batch * hn_div_up(a->y.size[1], q->rows) * hn_div_up(a->y.size[2], q->pixels) * (q->stored / 4);
}

static bool describe(const hone_step *s, const hn_codes_depthwise_config *t, problem *q, hone_reason *why) {
  if (!hn_codes_read(s, &q->c, why) || !hn_conv_attr_of(&q->c.inner, &q->a, why)) return false;
  const hn_conv_attr *a = &q->a;
  if (a->cin != 1 || a->cout != 1)
    return hn_refuse(why, "not depthwise: %lld inputs and %lld outputs a group", (long long)a->cin,
                     (long long)a->cout);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->kernel[1] * a->kernel[2] > 128) return hn_refuse(why, "more than 128 taps");
  const hone_tensor_desc *y = &s->output[0].desc;
  /* Behind the last channel is padding of this tensor's own, or another's channels. */
  const bool own = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch == a->y.view.pixel;
  q->stored = own ? y->channel_pitch : hn_fill_up(a->groups, 4);
  if (!own && q->stored > a->groups) return hn_refuse(why, "part of a wider tensor, not in whole fours");
  const hn_pixels *const side[] = {&a->x, &a->y};
  for (int i = 0; i < 2; i++)
    if (side[i]->view.pixel < q->stored || side[i]->view.pixel % 4 || side[i]->view.row % 4 ||
        side[i]->view.batch % 4)
      return hn_refuse(why, "pixels do not lie at multiples of 4 bytes");
  q->pixels = a->kernel[2] <= 3 && a->stride[2] == 1 && a->dilation[2] == 1 && a->y.size[2] > 1 ? 2 : 1;
  q->rows = t->rows;
  if (q->rows > 1 && (a->dilation[1] != 1 || a->stride[1] >= a->kernel[1] || a->y.size[1] < q->rows))
    return hn_refuse(why, "rows below each other share nothing, or there are less than %lld",
                     (long long)q->rows);
  if (threads_of(q) > INT32_MAX || a->x.view.row * a->x.size[1] > INT32_MAX)
    return hn_refuse(why, "more than 2^31 words, or an image of more than 2 GiB");
  return true;
}

bool hn_codes_depthwise_accepts(const hone_step *s, const hone_machine *m, const hn_codes_depthwise_config *t,
                                hone_reason *why) {
  problem q;
  (void)m;
  return strcmp(s->anchor, "QLinearConv") == 0 && describe(s, t, &q, why);
}

double hn_codes_depthwise_cost(const hone_step *s, const hone_machine *m,
                               const hn_codes_depthwise_config *t) {
  problem q;
  if (!describe(s, t, &q, NULL)) return HN_REFUSED_SECONDS;
  /* Instructions of a thread: its place; each row's loads and turns, and its products; what ends each result.
   */
  const hn_conv_attr *a = &q.a;
  const double groups = (double)hn_div_up(a->kernel[2] + q.pixels - 1, 4),
               rows = (double)((q.rows - 1) * a->stride[1] + a->kernel[1]),
               products = (double)(q.rows * q.pixels * a->kernel[1]) * groups * 4;
  const double instructions = 80 + rows * groups * 22 + products + (double)(q.rows * q.pixels) * 30;
  const double least = 2.4e-9 * instructions + m->launch_s; /* of one thread */
  return fmax(least, hn_cuda_seconds(m, 2 * instructions * (double)threads_of(&q), m->peak_flops,
                                     hn_cuda_bytes(s), 0.6));
}

static int64_t groups_of(const problem *q) { return hn_div_up(q->a.kernel[2] + q->pixels - 1, 4); }

static hn_codes_blob blob_of(const problem *q) {
  return hn_codes_blob_of(&q->c, (size_t)(q->a.kernel[1] * groups_of(q) * q->stored) * 4);
}

hone_status hn_codes_depthwise_need(const hone_step *s, const hone_machine *m,
                                    const hn_codes_depthwise_config *t, hone_tactic_need *n,
                                    hone_error *error) {
  problem q;
  (void)m;
  hone_reason why = {""};
  if (!describe(s, t, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = blob_of(&q).bytes;
  n->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

hone_status hn_codes_depthwise_prepack(const hone_step *s, const hone_machine *m,
                                       const hn_codes_depthwise_config *t, void *blob, hone_error *error) {
  problem q;
  (void)m;
  hone_reason why = {""};
  if (!describe(s, t, &q, &why)) return hn_not_described(s, &why, error);
  const hn_codes_blob b = blob_of(&q);
  int8_t *w = hn_codes_weights(s, &q.c), *to = blob;
  if (!w)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const int64_t kh = q.a.kernel[1], kw = q.a.kernel[2], groups = groups_of(&q);
  for (int64_t c = 0; c < q.a.groups; c++)
    for (int64_t r = 0; r < kh; r++)
      for (int64_t t = 0; t < kw; t++)
        to[((r * groups + t / 4) * q.stored + c) * 4 + t % 4] = w[(c * kh + r) * kw + t];
  hn_codes_vectors(s, &q.c, w, &b, blob);
  hn_free(w);
  return HONE_OK;
}

hone_status hn_codes_depthwise_run(const hone_step_run *r, const hn_codes_depthwise_config *t,
                                   hone_error *error) {
  problem q;
  hone_reason why = {""};
  const hone_step *s = r->step;
  if (!describe(s, t, &q, &why)) return hn_not_described(s, &why, error);
  if ((uintptr_t)r->in[0] % 4 || (uintptr_t)r->out[0] % 4)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  const hn_conv_attr *a = &q.a;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(r, &b, &q.c);
  const int64_t in_row = hn_div_up(a->y.size[2], q.pixels);
  const hn_codes_depthwise_args args = {.x = r->in[0],
                                        .y = r->out[0],
                                        .weights = r->blob,
                                        .codes = q.c.args,
                                        .x_image = a->x.view.batch,
                                        .x_row = a->x.view.row,
                                        .x_pixel = a->x.view.pixel,
                                        .y_image = a->y.view.batch,
                                        .y_row = a->y.view.row,
                                        .y_pixel = a->y.view.pixel,
                                        .in_y = (i32)a->x.size[1],
                                        .in_x = (i32)a->x.size[2],
                                        .out_y = (i32)a->y.size[1],
                                        .out_x = (i32)a->y.size[2],
                                        .pad_y = (i32)a->pad[1],
                                        .pad_x = (i32)a->pad[2],
                                        .channels = (i32)a->groups,
                                        .fours = hn_cuda_divisor((u32)(q.stored / 4)),
                                        .groups = hn_cuda_divisor((u32)in_row),
                                        .rows = hn_cuda_divisor((u32)hn_div_up(a->y.size[1], q.rows)),
                                        .work = (u32)threads_of(&q),
                                        .outside = (u32)(q.c.x_zero & 0xff) * 0x01010101u};
  hn_str text = {0};
  hn_str_printf(&text,
                "#define HN_T %s\n#define HN_CODE %s\n#define HN_KH %d\n#define HN_KW %d\n#define HN_SH %d\n"
                "#define HN_SW %d\n#define HN_DH %d\n#define HN_DW %d\n#define HN_TW %d\n#define HN_TH %d\n",
                hone_dtype_name(s->input[0].desc.dtype), hone_dtype_name(s->output[0].desc.dtype),
                (int)a->kernel[1], (int)a->kernel[2], (int)a->stride[1], (int)a->stride[2],
                (int)a->dilation[1], (int)a->dilation[2], (int)q.pixels, (int)q.rows);
  const hone_status st = hn_cuda_launch_line(hn_cuda_queue_of(r), "codes_depthwise", &text, "codes_depthwise",
                                             args.work, 128, &args, sizeof args, error);
  hn_str_free(&text);
  return st;
}
