/* A 1x1 convolution and the depthwise one behind it, whose input never reaches memory: conv_chain_expand.cu.
 * For f16 and bf16, on the tensor cores of arch 80 and up. Blocks are many and small: what it saves is a
 * kernel and its wait, so it is for few pixels above all. */
#include "backends/cuda/product/conv_chain_expand_args.h"
#include "backends/cuda/product/depthwise.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/tactic.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { THREADS = 256, WARPS = THREADS / 32, MOST_SHARED = 100 << 10 };

/* How a step is cut. */
typedef struct cut {
  uint32_t channels, bh, bw, tw; /* of a slice; the box of output pixels; those of a thread */
  uint32_t in_h, in_w;           /* the box's taps */
  uint32_t ahead, together;      /* as in the device text */
  uint32_t slices, boxes_x, boxes_y, blocks, shared;
  double seconds; /* predicted */
} cut;

typedef struct chain {
  const hone_step *first_step, *last_step;
  hn_conv_attr point, depth;
  uint32_t k32; /* channels of x in thirty-twos */
  cut cut;
} chain;

static bool is_point(const hn_conv_attr *a) {
  for (int i = 0; i < 3; i++)
    if (a->kernel[i] != 1 || a->stride[i] != 1 || a->pad[i] != 0 || a->x.size[i] != a->y.size[i])
      return false;
  return a->groups == 1;
}

static bool read_point(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!hn_cuda_stored(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  if (!is_point(a)) return hn_refuse(why, "the first convolution is not 1x1 on every pixel");
  if (s->input[0].desc.dtype == HONE_DTYPE_F32) return hn_refuse(why, "elements of 32 bits");
  if (!s->input[1].constant || !hn_cuda_type(s->input[1].desc.dtype))
    return hn_refuse(why, "weights are not constant numbers of a floating type");
  if (hn_cuda_has(s, 2) && !hn_cuda_type(s->input[2].desc.dtype))
    return hn_refuse(why, "the bias is no vector of a floating type");
  if (a->x.view.pixel < hn_fill_up(a->cin, 8) || a->x.view.pixel % 8 || a->x.view.row % 8 ||
      a->x.view.batch % 8)
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  if (a->x.view.batch > INT32_MAX) return hn_refuse(why, "an image of more than 2^31 elements");
  return hn_cuda_epilogue_accepts(s, why) && hn_cuda_epilogue_inside(s, why);
}

static size_t slice_bytes(const chain *c, uint32_t channels) {
  const size_t taps = (size_t)(c->depth.kernel[1] * c->depth.kernel[2]);
  return (size_t)channels / 16 * c->k32 * 1024 + (taps + 2) * channels * sizeof(float);
}

/* A multiprocessor of an H200: what a kernel takes that reads once and stores, what its blocks draw from L2 a
 * second, and instructions of warps, of which it begins four a cycle at best. COST_ALONE: cycles between two
 * instructions of a warp whose block is alone there. COST_PRODUCT: how much longer than others those take
 * that make fragments and their products. Fitted to 36 steps of mobilenetv2 at batch 8 to 256. */
#define COST_BASE 1.5e-6
#define COST_L2 6e10
#define COST_ISSUE 2.0
#define COST_ALONE 2.0
#define COST_PRODUCT 2.5
static double seconds_of(const chain *c, const hone_machine *m, const cut *u) {
  const double sms = m->processors ? m->processors : 132, dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double clock = hn_cuda_clock(m);
  const hn_conv_attr *d = &c->depth;
  const double in_h = fmin(u->in_h, (double)d->x.size[1]), in_w = fmin(u->in_w, (double)d->x.size[2]);
  const double sixteens = ceil(in_h * in_w / 16), groups = u->channels / 16.0,
               taps = (double)(d->kernel[1] * d->kernel[2]);
  const double inner = hn_cuda_epilogue_instructions(c->first_step),
               outer = hn_cuda_epilogue_instructions(c->last_step);
  /* Instructions of warps: fragments, their epilogue; then taps. */
  const double expand =
      COST_PRODUCT * sixteens * (30 + c->k32 * (6 + groups * 6) + groups * (8 * (1 + inner) + 8));
  const double columns = d->dilation[2] == 1 ? (double)((u->tw - 1) * d->stride[2] + d->kernel[2])
                                             : (double)(u->tw * d->kernel[2]);
  const double items = ceil(u->channels / 4.0 * u->bw / u->tw * u->bh / 32);
  const double depth =
      items * (40 + (double)d->kernel[1] * columns * 5 + taps * (1 + 4 * u->tw) + u->tw * (12 + 4 * outer));
  const double drawn =
      in_h * in_w * (double)hn_fill_up(c->point.cin, 8) * 2 + (double)slice_bytes(c, u->channels);
  /* A block alone waits for its warps; those that share a multiprocessor fill each other's gaps. */
  const double alone = COST_ALONE * 4 * (expand + depth) / (WARPS * clock);
  const double rounds = ceil(u->blocks / sms),
               busy = rounds * ((expand + depth) / (COST_ISSUE * clock) + drawn / COST_L2);
  const double bytes = (double)hone_desc_bytes(&c->first_step->input[0].desc) +
                       (double)hone_desc_bytes(&c->last_step->output[0].desc) +
                       hn_cuda_epilogue_bytes(c->last_step);
  const double work = fmax(fmax(alone, busy), bytes / (0.85 * dram));
  return COST_BASE + work - 1.3e-6 + m->launch_s;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void try_box(chain *c, const hone_machine *m, cut u) {
  const hn_conv_attr *d = &c->depth;
  const int64_t oh = d->y.size[1], ow = d->y.size[2];
  const int64_t in_h = (u.bh - 1) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1] + 1;
  const int64_t in_w = (u.bw - 1) * d->stride[2] + (d->kernel[2] - 1) * d->dilation[2] + 1;
  const size_t box = (size_t)(in_h * in_w) * u.channels * 2, shared = slice_bytes(c, u.channels) + box;
  if (in_h > 512 || in_w > 512 || shared > MOST_SHARED || shared > m->shared_bytes) return;
  u.in_h = (uint32_t)in_h, u.in_w = (uint32_t)in_w, u.shared = (uint32_t)shared;
  u.slices = (uint32_t)hn_div_up(d->groups, u.channels);
  u.boxes_x = (uint32_t)hn_div_up(ow, u.bw), u.boxes_y = (uint32_t)hn_div_up(oh, u.bh);
  const double blocks = (double)u.slices * u.boxes_x * u.boxes_y * (double)d->x.batch;
  if (blocks > INT32_MAX) return;
  u.blocks = (uint32_t)blocks;
  u.tw = u.bw % 2 || u.channels / 4 * u.bw * u.bh <= THREADS ? 1 : 2;
  /* What a warp has on its way: 16 registers for each thirty-two of sixteen pixels, and sums. */
  const uint32_t sixteens = (uint32_t)hn_div_up(hn_div_up((int64_t)u.in_h * u.in_w, 16), WARPS);
  u.ahead = smaller(smaller(sixteens, 128 / u.channels), c->k32 < 3 ? 4 / c->k32 : 1);
  u.together = smaller(c->k32, 5 / u.ahead ? 5 / u.ahead : 1);
  u.seconds = seconds_of(c, m, &u);
  if (u.seconds < c->cut.seconds) c->cut = u;
}

/* The cut of least predicted time: rows in whole, or in parts where they are long. */
static bool choose_cut(chain *c, const hone_machine *m) {
  static const uint32_t channels[] = {16, 32, 48, 64};
  const uint32_t oh = (uint32_t)c->depth.y.size[1], ow = (uint32_t)c->depth.y.size[2];
  c->cut.seconds = INFINITY;
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
    for (uint32_t parts = 1; parts <= 8 && parts <= ow; parts++)
      for (uint32_t bh = 1; bh <= oh && bh <= 32; bh++)
        try_box(c, m, (cut){.channels = channels[i], .bh = bh, .bw = (uint32_t)hn_div_up(ow, parts)});
  return isfinite(c->cut.seconds);
}

static bool describe(const hone_step *s, const hone_machine *m, chain *c, hone_reason *why) {
  memset(c, 0, sizeof *c);
  if (s->n_parts != 2) return hn_refuse(why, "%u parts", s->n_parts);
  if (s->n_inputs > HN_CUDA_PART_INPUTS) return hn_refuse(why, "more than %d inputs", HN_CUDA_PART_INPUTS);
  c->first_step = s->part[0].step, c->last_step = s->part[1].step;
  if (!read_point(c->first_step, &c->point, why) || !hn_cuda_depthwise_of(c->last_step, &c->depth, why))
    return false;
  if (c->first_step->output[0].desc.dtype != c->first_step->input[0].desc.dtype ||
      c->last_step->output[0].desc.dtype != c->first_step->input[0].desc.dtype)
    return hn_refuse(why, "types differ");
  if (!hn_cuda_tensor_cores(m, c->first_step->input[0].desc.dtype, why)) return false;
  if (!hn_conv_is_picture(&c->point)) return hn_refuse(why, "three spatial dimensions");
  if (c->depth.kernel[1] * c->depth.kernel[2] > 49) return hn_refuse(why, "more than 49 taps");
  if (c->depth.y.view.batch > INT32_MAX) return hn_refuse(why, "an image of more than 2^31 elements");
  c->k32 = (uint32_t)hn_div_up(c->point.cin, 32);
  return choose_cut(c, m) || hn_refuse(why, "too little shared memory");
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  chain c;
  return describe(s, m, &c, why);
}

/* In doubt two steps: where multiprocessors have more than two blocks each, the prediction is off by up to a
 * tenth, and there is little to save. */
static double cost(const hone_step *s, const hone_machine *m) {
  chain c;
  if (!describe(s, m, &c, NULL)) return HN_REFUSED_SECONDS;
  return c.cut.blocks > 2 * m->processors ? c.cut.seconds * 1.1 : c.cut.seconds;
}

/* ------------------------------------------------------------------ weights */

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, &c, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = slice_bytes(&c, c.cut.channels) * c.cut.slices;
  n->packed = 1u << s->part[0].input[1] | 1u << s->part[1].input[1];
  return HONE_OK;
}

/* Where weight (channel of x, channel of the slice) lies among the fragments, in elements. */
static size_t fragment_of(const chain *c, int64_t k, int64_t n) {
  const size_t t = (size_t)(k % 32 / 8), half = (size_t)(k % 8 / 4), word = (size_t)(k % 4 / 2);
  const size_t lane = (size_t)(n % 16 / 4 * 2 + n % 2) * 4 + t, tile = (size_t)(n % 4 / 2);
  const size_t block = ((size_t)(n / 16) * c->k32 + (size_t)(k / 32)) * 2 + half;
  return (block * 32 + lane) * 8 + tile * 4 + word * 2 + (size_t)(k % 2);
}

static hone_status put_slice(const chain *c, int64_t first, char *slice, hone_error *error) {
  const int64_t channels = c->cut.channels, taps = c->depth.kernel[1] * c->depth.kernel[2],
                cin = c->point.cin;
  const hone_step *a = c->first_step, *b = c->last_step;
  const bool f16 = a->input[0].desc.dtype == HONE_DTYPE_F16;
  uint16_t *fragments = (uint16_t *)(void *)slice;
  float *bias = (float *)(void *)(slice + channels / 16 * c->k32 * 1024), *tap = bias + channels;
  for (int64_t n = 0; n < channels && first + n < c->depth.groups; n++) {
    float w;
    for (int64_t k = 0; k < cin; k++) {
      if (!hn_cuda_constant_f32(&a->input[1], (first + n) * cin + k, 1, &w))
        return hn_fail(error, HONE_ERROR_INTERNAL, "conv_chain_expand: weights of an odd type");
      fragments[fragment_of(c, k, n)] = f16 ? hn_f32_to_f16(w) : hn_f32_to_bf16(w);
    }
    for (int64_t t = 0; t < taps; t++) {
      if (!hn_cuda_constant_f32(&b->input[1], (first + n) * taps + t, 1, &w))
        return hn_fail(error, HONE_ERROR_INTERNAL, "conv_chain_expand: weights of an odd type");
      tap[t * channels + n] = w;
    }
    if (hn_cuda_depthwise_bias(a) == HN_CUDA_NO_BIAS)
      hn_cuda_constant_f32(&a->input[2], first + n, 1, bias + n);
    if (hn_cuda_depthwise_bias(b) == HN_CUDA_NO_BIAS)
      hn_cuda_constant_f32(&b->input[2], first + n, 1, tap + taps * channels + n);
  }
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, &c, &why)) return hn_not_described(s, &why, error);
  const size_t bytes = slice_bytes(&c, c.cut.channels);
  hone_status st = HONE_OK;
  for (uint32_t i = 0; i < c.cut.slices && !st; i++)
    st = put_slice(&c, (int64_t)i * c.cut.channels, (char *)blob + i * bytes, error);
  return st;
}

/* ------------------------------------------------------------------ run */

static hone_status write_prefix(const chain *c, hn_str *text, hone_error *error) {
  const hn_conv_attr *d = &c->depth;
  const cut *u = &c->cut;
  hn_cuda_define_type(text, c->last_step->output[0].desc.dtype);
  hn_str_printf(text, "#define HN_KH %lld\n#define HN_KW %lld\n#define HN_SH %lld\n#define HN_SW %lld\n",
                (long long)d->kernel[1], (long long)d->kernel[2], (long long)d->stride[1],
                (long long)d->stride[2]);
  hn_str_printf(text, "#define HN_DH %lld\n#define HN_DW %lld\n", (long long)d->dilation[1],
                (long long)d->dilation[2]);
  hn_str_printf(text,
                "#define HN_CB %u\n#define HN_BH %u\n#define HN_BW %u\n#define HN_TW %u\n#define HN_K32 %u\n"
                "#define HN_AHEAD %u\n#define HN_TOGETHER %u\n#define HN_BLOCKS 2\n#define HN_FAST_MATH 1\n",
                u->channels, u->bh, u->bw, u->tw, c->k32, u->ahead, u->together);
  hone_status st = hn_cuda_epilogue(c->last_step, hn_cuda_depthwise_bias(c->last_step), text, error);
  if (st) return st;
  return hn_cuda_epilogue_inner4(c->first_step, hn_cuda_depthwise_bias(c->first_step),
                                 d->groups % u->channels != 0, text, error);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_step *s = r->step;
  chain c;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(q), &c, &why)) return hn_not_described(s, &why, error);
  hn_cuda_part first, last;
  hn_cuda_part_run(r, 0, &first), hn_cuda_part_run(r, 1, &last);
  if (((uintptr_t)first.in[0] | (uintptr_t)r->out[0]) % 16)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  const hn_pixels *x = &c.point.x, *y = &c.depth.y;
  hn_conv_chain_expand_args g = {.x = first.in[0], .y = r->out[0], .weights = r->blob};
  g.x_image = x->view.batch, g.x_row = (i32)x->view.row, g.x_pixel = (i32)x->view.pixel;
  g.y_image = y->view.batch, g.y_row = (i32)y->view.row, g.y_pixel = (i32)y->view.pixel;
  g.vectors = (i32)hn_div_up(c.point.cin, 8), g.channels = (i32)hn_fill_up(c.depth.groups, 8);
  g.in_h = (i32)x->size[1], g.in_w = (i32)x->size[2];
  g.out_h = (i32)y->size[1], g.out_w = (i32)y->size[2];
  g.pad_h = (i32)c.depth.pad[1], g.pad_w = (i32)c.depth.pad[2];
  g.slices = (i32)c.cut.slices, g.boxes_x = (i32)c.cut.boxes_x, g.boxes_y = (i32)c.cut.boxes_y;
  hn_cuda_epilogue_bind(&first.run, hn_cuda_depthwise_bias(c.first_step), &g.inner);
  hn_cuda_epilogue_bind(&last.run, hn_cuda_depthwise_bias(c.last_step), &g.epilogue);
  hn_str text = {0};
  hone_status st = write_prefix(&c, &text, error);
  if (!st && c.cut.blocks) {
    const hn_cuda_kernel kernel = {"conv_chain_expand", text.ptr, "conv_chain_expand"};
    const hn_cuda_shape shape = {
        .grid = {c.cut.blocks, 1, 1}, .threads = THREADS, .shared = c.cut.shared, .overlap = true};
    st = hn_cuda_launch(q, &kernel, &shape, &g, sizeof g, error);
  }
  hn_str_free(&text);
  return st;
}

HN_TACTIC(cuda, conv_chain_expand, "ConvChain", 2, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
