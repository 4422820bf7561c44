/* QLinearConv (with a table) of images of up to four channels by products of warpgroups (conv_image_wgmma.cu,
 * arch 90). */
#include <string.h>

#include "backends/cuda/quantized/codes.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/wgmma/conv_image_wgmma.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

enum { CHANNELS = 4, MOST_TAPS = 16, VECTOR = 16 };

typedef struct problem {
  hn_codes c;
  hn_conv_attr a;
  hn_image_plan p;
} problem;

static bool describe(const hone_step *s, const hone_machine *m, problem *q, hone_reason *why) {
  if (!hn_codes_read(s, &q->c, why) || !hn_conv_attr_of(&q->c.inner, &q->a, why)) return false;
  const hn_conv_attr *a = &q->a;
  if (a->groups != 1 || a->cin > CHANNELS)
    return hn_refuse(why, "%lld groups of %lld channels: no image", (long long)a->groups, (long long)a->cin);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->dilation[1] != 1 || a->dilation[2] != 1) return hn_refuse(why, "dilated");
  if (a->kernel[2] > MOST_TAPS) return hn_refuse(why, "a kernel of more than %d columns", MOST_TAPS);
  const hone_tensor_desc *y = &s->output[0].desc;
  const bool own = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->channel_pitch == a->y.view.pixel;
  if (a->cout % VECTOR && !own) return hn_refuse(why, "part of a wider tensor, not in whole 16s");
  if (a->x.view.pixel < CHANNELS || a->x.view.pixel % 4 || a->x.view.row % 4 || a->x.view.batch % 4 ||
      a->y.view.pixel % VECTOR || a->y.view.row % VECTOR || a->y.view.batch % VECTOR ||
      a->y.view.pixel < hn_fill_up(a->cout, VECTOR))
    return hn_refuse(why, "pixels do not lie at multiples of 4 bytes, or the output's of 16");
  return hn_image_plan_of(m, a, true, &q->p, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  problem q;
  return describe(s, m, &q, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  problem q;
  return describe(s, m, &q, NULL) ? hn_image_seconds(m, &q.p, hn_cuda_bytes(s)) : HN_REFUSED_SECONDS;
}

static hn_codes_blob blob_of(const problem *q) { return hn_codes_blob_of(&q->c, hn_image_weights(&q->p)); }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = blob_of(&q).bytes;
  n->packed = 1u << HN_QLINEAR_W;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_not_described(s, &why, error);
  const hn_conv_attr *a = &q.a;
  const hn_codes_blob b = blob_of(&q);
  int8_t *w = hn_codes_weights(s, &q.c), *to = blob;
  if (!w)
    return hn_fail_memory(error, (size_t)hone_desc_count(&s->input[HN_QLINEAR_W].desc), "packing weights");
  for (int64_t k = 0; k < q.p.blocks; k++)
    for (int64_t step = 0; step < q.p.steps; step++)
      for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 16; i++, to++) {
          const hn_image_weight at = hn_image_weight_of(&q.p, a, k, step, thread, i);
          if (at.n < a->cout && at.c < a->cin && at.y >= 0 && at.y < a->kernel[1] && at.x < a->kernel[2])
            *to = w[((at.n * a->cin + at.c) * a->kernel[1] + at.y) * a->kernel[2] + at.x];
        }
  hn_codes_vectors(s, &q.c, w, &b, blob);
  hn_free(w);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  problem q;
  hone_reason why = {""};
  const hone_step *s = r->step;
  char more[128];
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(r)), &q, &why)) return hn_not_described(s, &why, error);
  if ((uintptr_t)r->in[0] % 4 || (uintptr_t)r->out[0] % VECTOR)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  if (!q.p.tiles || !q.p.blocks) return HONE_OK;
  const hn_conv_attr *a = &q.a;
  const hn_codes_blob b = blob_of(&q);
  hn_codes_bind(r, &b, &q.c);
  hn_conv_image_args g = {.x = r->in[0],
                          .y = r->out[0],
                          .w = r->blob,
                          .x_image = a->x.view.batch,
                          .x_row = a->x.view.row,
                          .x_pixel = (i32)a->x.view.pixel,
                          .y_image = a->y.view.batch,
                          .y_row = a->y.view.row,
                          .y_pixel = (i32)a->y.view.pixel,
                          .in_h = (i32)a->x.size[1],
                          .in_w = (i32)a->x.size[2],
                          .out_h = (i32)a->y.size[1],
                          .out_w = (i32)a->y.size[2],
                          .pad_h = (i32)a->pad[1],
                          .pad_w = (i32)a->pad[2],
                          .vectors = (i32)hn_div_up(a->cout, VECTOR),
                          .codes = q.c.args,
                          .channels = (i32)a->cout,
                          .outside = (u32)(q.c.x_zero & 0xff) * 0x01010101u};
  const bool is_signed = s->input[0].desc.dtype == HONE_DTYPE_I8;
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_T %s\n#define HN_CODE %s\n%s", hone_dtype_name(s->input[0].desc.dtype),
                hone_dtype_name(s->output[0].desc.dtype), hn_codes_prefix(&q.c, false, more, sizeof more));
  hn_image_prefix(a, &q.p, &text);
  hn_str_puts(&text, "#include \"prelude.cuh\"\n");
  hn_wgmma_write_codes_product(&text, "hn_wgmma_first", is_signed, q.p.n, false);
  hn_wgmma_write_codes_product(&text, "hn_wgmma_add", is_signed, q.p.n, true);
  const hone_status st = hn_image_launch(r, &q.p, &g, &text, error);
  hn_str_free(&text);
  return st;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)s, (void)m;
  w->arithmetic = HONE_ARITHMETIC_INT8;
}

HN_TACTIC(cuda, codes_image_wgmma, "QLinearConv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run, .work = work);
HN_TACTIC(cuda, codes_image_table_wgmma, "QLinearConvTable", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run, .work = work);
