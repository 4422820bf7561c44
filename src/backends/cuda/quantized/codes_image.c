/* QLinearConv (with a table) of images of up to four channels, channels-last (codes_image.cu): first layers.
 */
#include <math.h>
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/quantized/codes_image_args.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/mem.h"
#include "optimize/step/conv_attr.h"

enum { TILE = 16, MOST_SHARED = 46 << 10 };

typedef struct problem {
  hn_codes c;
  hn_conv_attr a;
  int64_t stored, steps, eights, chunks; /* eights of columns of a block; blocks that share the columns */
} problem;

static bool describe(const hone_step *s, const hone_machine *m, problem *q, hone_reason *why) {
  if (!hn_cuda_tensor_cores(m, HONE_DTYPE_I8, why)) return false;
  if (!hn_codes_read(s, &q->c, why) || !hn_conv_attr_of(&q->c.inner, &q->a, why)) return false;
  const hn_conv_attr *a = &q->a;
  if (a->groups != 1 || a->cin > 4)
    return hn_refuse(why, "%lld groups of %lld channels: no image", (long long)a->groups, (long long)a->cin);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  const int64_t taps = a->kernel[1] * a->kernel[2];
  if (taps > 64) return hn_refuse(why, "%lld taps", (long long)taps);
  const hone_tensor_desc *y = &s->output[0].desc;
  const bool own = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch == a->y.view.pixel;
  q->stored = own ? y->channel_pitch : hn_fill_up(a->cout, 4);
  if (!own && q->stored > a->cout) return hn_refuse(why, "part of a wider tensor, not in whole fours");
  if (a->x.view.pixel < 4 || a->x.view.pixel % 4 || a->x.view.row % 4 || a->x.view.batch % 4 ||
      a->y.view.pixel % 4 || a->y.view.row % 4 || a->y.view.batch % 4)
    return hn_refuse(why, "pixels do not lie at multiples of 4 bytes");
  q->steps = hn_div_up(taps, 8);
  q->eights = hn_fill_up(q->stored, 16) / 8 < 8 ? hn_fill_up(q->stored, 16) / 8 : 8;
  q->chunks = hn_div_up(q->stored, q->eights * 8);
  const int64_t rows = (TILE - 1) * a->stride[1] + (a->kernel[1] - 1) * a->dilation[1] + 1,
                columns = ((TILE - 1) * a->stride[2] + (a->kernel[2] - 1) * a->dilation[2] + 1) | 1;
  if (rows * columns * 4 + q->steps * q->eights * 256 > MOST_SHARED)
    return hn_refuse(why, "strides or dilations too wide");
  if (a->x.batch * a->y.size[1] * a->y.size[2] > INT32_MAX || a->x.view.row * a->x.size[1] > INT32_MAX ||
      q->chunks > 65535)
    return hn_refuse(why, "more than 2^31 pixels, or an image of more than 2 GiB");
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  problem q;
  return describe(s, m, &q, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  problem q;
  if (!describe(s, m, &q, NULL)) return HN_REFUSED_SECONDS;
  const hn_conv_attr *a = &q.a;
  const double tiles = (double)(a->y.batch * hn_div_up(a->y.size[1], TILE) * hn_div_up(a->y.size[2], TILE)),
               flops = 2.0 * tiles * TILE * TILE * (double)(q.chunks * q.eights * 8 * q.steps * 32);
  const double codes = m->half_flops > 0 ? 2 * m->half_flops : 2e14,
               sms = m->processors ? m->processors : 132;
  /* A block's image arrives before anything else happens. */
  const double rounds = (double)(int64_t)(tiles * (double)q.chunks / (2 * sms) + 0.999);
  const double seconds = hn_cuda_seconds(m, flops, 0.25 * codes, hn_cuda_bytes(s), 0.55);
  return fmax(seconds, m->launch_s + rounds * 2.5e-6);
}

static hn_codes_blob blob_of(const problem *q) {
  return hn_codes_blob_of(&q->c, (size_t)(q->chunks * q->steps * q->eights * 256));
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = blob_of(&q).bytes;
  n->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

/* Where channel i of tap t of output channel c stands: lane l of an eight has column l / 4, and taps l % 4
 * and 4 more. */
static size_t place(const problem *q, int64_t c, int64_t t, int64_t i) {
  const int64_t within = c % (q->eights * 8), sixteen = within / 16, k = within % 16;
  const int64_t eight = sixteen * 2 + (k >> 1 & 1), column = 2 * (k >> 2) + (k & 1),
                lane = column * 4 + t % 4;
  const int64_t fragment = (c / (q->eights * 8) * q->steps + t / 8) * q->eights + eight;
  return (size_t)(((fragment * 32 + lane) * 2 + t % 8 / 4) * 4 + i);
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  const hn_codes_blob b = blob_of(&q);
  int8_t *w = hn_codes_weights(s, &q.c), *to = blob;
  if (!w)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  const int64_t taps = q.a.kernel[1] * q.a.kernel[2];
  for (int64_t c = 0; c < q.a.cout; c++)
    for (int64_t i = 0; i < q.a.cin; i++)
      for (int64_t t = 0; t < taps; t++) to[place(&q, c, t, i)] = w[(c * q.a.cin + i) * taps + t];
  hn_codes_vectors(s, &q.c, w, &b, blob);
  hn_free(w);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  problem q;
  hone_reason why = {""};
  const hone_step *s = r->step;
  hn_cuda_queue *queue = hn_cuda_queue_of(r);
  char more[128];
  if (!describe(s, hn_cuda_machine(queue), &q, &why)) return hn_not_described(s, &why, error);
  if ((uintptr_t)r->in[0] % 4 || (uintptr_t)r->out[0] % 4)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  const hn_conv_attr *a = &q.a;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(r, &b, &q.c);
  const int64_t across = hn_div_up(a->y.size[2], TILE), down = hn_div_up(a->y.size[1], TILE);
  const hn_codes_image_args args = {.x = r->in[0],
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
                                    .channels = (i32)a->cout,
                                    .stored = (i32)q.stored,
                                    .across = hn_cuda_divisor((u32)across),
                                    .down = hn_cuda_divisor((u32)down),
                                    .outside = (u32)(q.c.x_zero & 0xff) * 0x01010101u};
  hn_str text = {0};
  hn_str_printf(&text,
                "#define HN_T %s\n#define HN_CODE %s\n#define HN_KH %d\n#define HN_KW %d\n#define HN_SH %d\n"
                "#define HN_SW %d\n#define HN_DH %d\n#define HN_DW %d\n#define HN_NT %d\n%s",
                hone_dtype_name(s->input[0].desc.dtype), hone_dtype_name(s->output[0].desc.dtype),
                (int)a->kernel[1], (int)a->kernel[2], (int)a->stride[1], (int)a->stride[2],
                (int)a->dilation[1], (int)a->dilation[2], (int)q.eights,
                hn_codes_prefix(&q.c, false, more, sizeof more));
  const hn_cuda_kernel kernel = {"codes_image", text.ptr, "codes_image"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)(a->y.batch * across * down), (uint32_t)q.chunks, 1},
                               .threads = 256,
                               .overlap = true};
  const hone_status st = text.failed ? hn_fail_memory(error, text.cap, "device text")
                                     : hn_cuda_launch(queue, &kernel, &shape, &args, sizeof args, error);
  hn_str_free(&text);
  return st;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)s, (void)m;
  w->arithmetic = HONE_ARITHMETIC_INT8;
}

HN_TACTIC(cuda, codes_image, "QLinearConv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cuda, codes_image_table, "QLinearConvTable", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
