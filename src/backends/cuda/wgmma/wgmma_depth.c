#include "backends/cuda/wgmma/wgmma_depth.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/product/depth_chain_args.h"
#include "backends/cuda/product/depthwise.h"
#include "backends/cuda/wgmma/tensor_map.h"
#include "backends/cuda/wgmma/wgmma_problem.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

enum {
  THREADS = 512,
  WORKERS = 12,    /* warps of the depthwise side */
  GROUP_WARPS = 4, /* at most, so that a block waits for none but its own */
  CHUNK = 64,      /* columns of y that are stored at a time */
  MOST_SUMS = 96,  /* registers of a thread for sums: a product has 128 in all */
  MOST_TAPS = 9    /* weights of four channels are in registers */
};

/* How a step is cut. */
typedef struct cut {
  uint32_t bw, bh, images, strips; /* the box */
  uint32_t in_w, in_h;             /* of the input, with its border */
  uint32_t warps, groups;          /* of a group; groups */
  uint32_t inputs, slots, panels, shared;
  int64_t boxes_x, boxes_y, tiles;
  double seconds; /* predicted */
} cut;

typedef struct chain {
  const hone_step *first_step, *last_step;
  hn_conv_attr depth;
  hn_wgmma_problem last;
  uint32_t channels, k_blocks; /* of a block; blocks */
  uint32_t columns, chunks;    /* of the product, as the tensor cores have it; of y */
  int staged;                  /* entry of the last epilogue that comes through shared memory: -1 for none */
  cut cut;
} chain;

/* The fewest channels that are none, and of those the largest blocks. */
static void divide_channels(chain *c) {
  static const uint32_t sizes[] = {64, 48, 32};
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const int64_t all = hn_fill_up(c->depth.groups, sizes[i]);
    if (all < least) least = all, c->channels = sizes[i];
  }
  c->k_blocks = (uint32_t)(least / c->channels);
}

static uint32_t whole_columns(uint32_t n) {
  static const uint32_t sizes[] = {16, 32, 64, 96, 128, 192};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (n <= sizes[i]) return sizes[i];
  return 0;
}

static bool read_parts(const hone_step *s, const hone_machine *m, chain *c, hone_reason *why) {
  if (s->n_parts != 2) return hn_refuse(why, "%u parts", s->n_parts);
  if (s->n_inputs > HN_CUDA_PART_INPUTS) return hn_refuse(why, "more than %d inputs", HN_CUDA_PART_INPUTS);
  c->first_step = s->part[0].step, c->last_step = s->part[1].step;
  if (!hn_cuda_depthwise_of(c->first_step, &c->depth, why) || !hn_wgmma_read(c->last_step, m, &c->last, why))
    return false;
  const hn_conv_attr *d = &c->depth;
  if (d->kernel[1] * d->kernel[2] > MOST_TAPS || d->kernel[1] > 3 || d->kernel[2] > 3 || d->stride[1] > 2 ||
      d->stride[2] > 2 || d->dilation[1] != 1 || d->dilation[2] != 1)
    return hn_refuse(why, "larger than 3x3, a stride above 2, or dilated");
  if (c->last.mode != HN_WGMMA_MATRIX)
    return hn_refuse(why, "the last convolution is not 1x1 on every pixel");
  const hone_dtype type = c->last.p.a_type;
  if (c->last.p.out_type != type || c->first_step->input[0].desc.dtype != type ||
      c->first_step->output[0].desc.dtype != type)
    return hn_refuse(why, "types differ");
  return hn_cuda_epilogue_inside(c->first_step, why);
}

static size_t block_bytes(const chain *c) { /* of the depthwise convolution, bias included */
  return (size_t)(c->depth.kernel[1] * c->depth.kernel[2] + 1) * c->channels * sizeof(float);
}

/* Shared memory: blocks of A with their weights, one a group and one that is multiplied; panels of results;
 * boxes of x, of which more than groups hide how long they are on their way. Fewer groups where there is no
 * room. */
static bool lay_out(const chain *c, const hone_machine *m, uint32_t wm, cut *u) {
  if (u->in_w > 256 || u->in_h > 256) return false;
  const size_t bytes =
      hn_round_up((size_t)u->images * u->in_w * u->in_h * c->channels * 2, 128) + block_bytes(c);
  const uint32_t box = (uint32_t)hn_round_up(bytes, 128) + 8;
  const uint32_t a = 64 * wm * 128, slot = a + c->columns * 128 + 16;
  const uint32_t room = m->shared_bytes < (227u << 10) ? (uint32_t)m->shared_bytes : 227u << 10;
  u->panels = c->chunks == 1 ? 2 : 1;
  const uint32_t fixed = u->panels * c->chunks * a + 64;
  for (u->groups = WORKERS / u->warps; u->groups; u->groups--)
    for (u->slots = u->groups + 1; u->slots >= u->groups && u->slots > 1; u->slots--) {
      const uint32_t taken = fixed + u->slots * slot;
      u->inputs = taken < room ? (room - taken) / box : 0;
      if (u->inputs > u->groups + 4) u->inputs = u->groups + 4;
      u->shared = taken + u->inputs * box;
      if (u->inputs >= u->slots && u->inputs > u->groups) return true;
    }
  return false;
}

/* Cycles of a multiprocessor for one block of a tile, by the instructions of a thread. */
static double block_cycles(const chain *c, const cut *u) {
  const hn_conv_attr *d = &c->depth;
  const uint32_t height = u->bh / u->strips;
  const double rows = height, read = (rows - 1) * (double)d->stride[1] + (double)d->kernel[1];
  const double loads = read * (double)(d->stride[2] + d->kernel[2]) * 5,
               taps = (double)(d->kernel[1] * d->kernel[2]);
  const double thread = 60 + loads + rows * 2 * (4 * taps + 16);
  /* Warps that are at work, and how much of the instructions' rate they reach. */
  const double busy = fmin(u->slots - 0.5, fmin(u->groups, u->inputs / 1.7)) * u->warps;
  return u->warps * thread / (4 * fmin(0.7, 0.07 * busy));
}

static double seconds_of(const chain *c, const hone_machine *m, uint32_t wm, const cut *u) {
  const double sms = m->processors ? m->processors : 132, half = m->half_flops > 0 ? m->half_flops : 1e15;
  const double clock = m->peak_flops > 0 ? m->peak_flops / (256 * sms) : 1.7e9;
  const double l2 = m->cache_bytes > 0 ? 1.4 * m->cache_bytes : 11.6e12,
               dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double rows = 64.0 * wm, box = (double)u->images * u->in_w * u->in_h * c->channels * 2;
  const double drawn = (double)u->tiles * c->k_blocks * (box + c->columns * 128.0);
  /* Of a block and of a tile: what the multiplying side does one after the other. */
  const double product = 2 * rows * c->columns * c->channels / (0.6 * half / sms) + 500 / clock,
               leave = c->columns * rows * 40e-12 + 1000 / clock;
  const double work = ceil((double)u->tiles / sms) *
                      fmax(c->k_blocks * block_cycles(c, u) / clock, c->k_blocks * product + leave);
  const double bytes = (double)hone_desc_bytes(&c->first_step->input[0].desc) + c->last.p.bytes -
                       (double)hone_desc_bytes(&c->last_step->input[0].desc);
  /* They overlap, but not wholly. */
  const double part[3] = {work, drawn / l2, bytes / (0.9 * dram)};
  double most = 0, sum = 0;
  for (int i = 0; i < 3; i++) most = fmax(most, part[i]), sum += part[i];
  return most + 0.15 * (sum - most);
}

static void try_box(chain *c, const hone_machine *m, uint32_t wm, cut u) {
  const int64_t oh = c->depth.y.size[1], ow = c->depth.y.size[2], n = c->depth.x.batch;
  u.warps = (uint32_t)hn_div_up((int64_t)u.images * u.strips * (u.bw / 2) * (c->channels / 4), 32);
  if (u.warps > GROUP_WARPS) return;
  u.boxes_x = hn_div_up(ow, u.bw), u.boxes_y = hn_div_up(oh, u.bh);
  u.tiles = u.boxes_x * u.boxes_y * hn_div_up(n, u.images);
  u.in_w = (u.bw - 1) * (uint32_t)c->depth.stride[2] + (uint32_t)c->depth.kernel[2];
  u.in_h = (u.bh - 1) * (uint32_t)c->depth.stride[1] + (uint32_t)c->depth.kernel[1];
  if (u.tiles > INT32_MAX || !lay_out(c, m, wm, &u)) return;
  u.seconds = seconds_of(c, m, wm, &u);
  if (u.seconds < c->cut.seconds) c->cut = u;
}

/* The box of least predicted time. */
static bool choose_box(chain *c, const hone_machine *m, uint32_t wm) {
  const uint32_t oh = (uint32_t)c->depth.y.size[1], ow = (uint32_t)c->depth.y.size[2];
  c->cut.seconds = INFINITY;
  for (uint32_t bw = 2; bw <= 64 && bw < ow + 2; bw += 2)
    for (uint32_t strips = 1; strips <= 4; strips++)
      for (uint32_t rows = 1; rows <= 8; rows++)
        for (uint32_t images = 1; images <= 8 && images <= c->depth.x.batch; images *= 2) {
          const cut u = {.bw = bw, .bh = strips * rows, .images = images, .strips = strips};
          if (images * u.bh * bw > 64 * wm || u.bh > oh + 1 || (strips - 1) * rows >= oh) continue;
          if (images > 1 && (bw < ow || u.bh < oh)) continue;
          try_box(c, m, wm, u);
        }
  return isfinite(c->cut.seconds);
}

static bool describe(const hone_step *s, const hone_machine *m, uint32_t wm, chain *c, hone_reason *why) {
  memset(c, 0, sizeof *c);
  if (!read_parts(s, m, c, why)) return false;
  c->staged = hn_cuda_epilogue_staged(c->last_step);
  if (hn_cuda_epilogue_tensors(c->last_step) > (c->staged >= 0)) /* they come by boxes as y is stored */
    return hn_refuse(why, "the epilogue reads two tensors, or one of another type");
  divide_channels(c);
  c->columns = whole_columns((uint32_t)c->last.p.args.n);
  if (!c->columns || c->columns * wm / 2 > MOST_SUMS)
    return hn_refuse(why, "%u pixels of %u columns do not fit into registers", 64 * wm,
                     (uint32_t)c->last.p.args.n);
  c->chunks = (uint32_t)hn_div_up(c->last.columns, CHUNK);
  if (!choose_box(c, m, wm)) return hn_refuse(why, "too little shared memory");
  return true;
}

bool hn_wgmma_depth_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_depth_config *config,
                            hone_reason *why) {
  chain c;
  return describe(s, m, config->wm, &c, why);
}

double hn_wgmma_depth_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_depth_config *config) {
  chain c;
  if (!describe(s, m, config->wm, &c, NULL)) return HN_REFUSED_SECONDS;
  return c.cut.seconds + 2.5e-6 + m->launch_s;
}

/* ------------------------------------------------------------------ weights */

static size_t depth_bytes(const chain *c) { return c->k_blocks * block_bytes(c); }
static size_t product_bytes(const chain *c) {
  return (size_t)c->k_blocks * c->columns * HN_WGMMA_BLOCK_BYTES;
}

hone_status hn_wgmma_depth_need(const hone_step *s, const hone_machine *m,
                                const hn_wgmma_depth_config *config, hone_tactic_need *need,
                                hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config->wm, &c, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = depth_bytes(&c) + product_bytes(&c);
  need->packed = 1u << s->part[0].input[1] | 1u << s->part[1].input[1];
  need->bytewise = 1u << s->part[1].input[1];
  return HONE_OK;
}

hone_status hn_wgmma_depth_prepack(const hone_step *s, const hone_machine *m,
                                   const hn_wgmma_depth_config *config, void *blob, hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config->wm, &c, &why)) return hn_not_described(s, &why, error);
  hn_wgmma_pack_channels(c.last_step, &c.last, c.columns, c.channels, (char *)blob + depth_bytes(&c));
  return hn_cuda_depthwise_weights(c.first_step, &c.depth, c.channels, blob, error);
}

/* ------------------------------------------------------------------ run */

static hone_status write_prefix(const chain *c, uint32_t wm, hn_str *text, hone_error *error) {
  const hn_conv_attr *d = &c->depth;
  const cut *u = &c->cut;
  hn_str_printf(
      text,
      "#define HN_T %s\n#define HN_KH %lld\n#define HN_KW %lld\n#define HN_SH %lld\n#define HN_SW %lld\n",
      hn_cuda_type(c->last.p.a_type), (long long)d->kernel[1], (long long)d->kernel[2],
      (long long)d->stride[1], (long long)d->stride[2]);
  hn_str_printf(
      text,
      "#define HN_CB %u\n#define HN_BH %u\n#define HN_BW %u\n#define HN_IMAGES %u\n#define HN_STRIPS %u\n"
      "#define HN_BN %u\n#define HN_WM %u\n#define HN_CHUNKS %u\n#define HN_INPUTS %u\n#define HN_SLOTS "
      "%u\n#define HN_GROUPS %u\n#define HN_PANELS %u\n"
      "#define HN_STAGED %d\n#define HN_FAST_MATH 1\n",
      c->channels, u->bh, u->bw, u->images, u->strips, c->columns, wm, c->chunks, u->inputs, u->slots,
      u->groups, u->panels, c->staged >= 0);
  hone_status st = hn_cuda_epilogue_fragments(c->last_step, c->last.p.bias, c->staged, text, error);
  if (st) return st;
  return hn_cuda_epilogue_inner4(c->first_step, hn_cuda_depthwise_bias(c->first_step),
                                 d->groups % c->channels != 0, text, error);
}

static hone_status make_maps(hn_cuda_queue *queue, const chain *c, const void *x, const void *added, void *y,
                             hn_depth_chain_args *a, hone_error *error) {
  const hn_conv_attr *d = &c->depth;
  const cut *u = &c->cut;
  const hone_dtype type = c->last.p.a_type;
  const hn_cuda_image in = {.channels = (uint32_t)hn_fill_up(d->groups, 8),
                            .w = (uint32_t)d->x.size[2],
                            .h = (uint32_t)d->x.size[1],
                            .n = (uint32_t)d->x.batch,
                            .pixel = d->x.view.pixel,
                            .row = d->x.view.row,
                            .image = d->x.view.batch,
                            .box = {c->channels, u->in_w, u->in_h, u->images}};
  const int64_t pixel = c->last.p.args.out_pitch, ow = d->y.size[2], oh = d->y.size[1];
  const hn_cuda_image out = {.channels = c->last.columns,
                             .w = (uint32_t)ow,
                             .h = (uint32_t)oh,
                             .n = (uint32_t)d->x.batch,
                             .pixel = pixel,
                             .row = pixel * ow,
                             .image = pixel * ow * oh,
                             .box = {CHUNK, u->bw, u->bh, u->images}};
  hone_status st = hn_cuda_map_image(queue, &a->x, type, x, &in, false, error);
  if (!st) st = hn_cuda_map_image(queue, &a->out, type, y, &out, true, error);
  if (!st && c->staged >= 0) st = hn_cuda_map_image(queue, &a->staged, type, added, &out, true, error);
  return st;
}

hone_status hn_wgmma_depth_run(const hone_step_run *run, const hn_wgmma_depth_config *config,
                               hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  const hone_step *s = run->step;
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config->wm, &c, &why)) return hn_not_described(s, &why, error);
  hn_cuda_part first, last;
  hn_cuda_part_run(run, 0, &first), hn_cuda_part_run(run, 1, &last);
  const void *added = c.staged >= 0 ? last.in[c.last_step->epilogue[c.staged].input] : NULL;
  if (!hn_product_aligned(first.in[0]) || !hn_product_aligned(run->out[0]) || !hn_product_aligned(added))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  hn_depth_chain_args args;
  memset(&args, 0, sizeof args);
  args.depth = run->blob, args.weights = (const char *)run->blob + depth_bytes(&c);
  args.k_blocks = (i32)c.k_blocks;
  args.tiles = (i32)c.cut.tiles, args.boxes_x = (i32)c.cut.boxes_x, args.boxes_y = (i32)c.cut.boxes_y;
  args.pad_h = (i32)c.depth.pad[1], args.pad_w = (i32)c.depth.pad[2];
  hn_cuda_epilogue_bind(&first.run, hn_cuda_depthwise_bias(c.first_step), &args.inner);
  hn_cuda_epilogue_bind(&last.run, c.last.p.bias, &args.epilogue);
  hone_status st = make_maps(queue, &c, first.in[0], added, run->out[0], &args, error);
  hn_str text = {0};
  if (!st) st = write_prefix(&c, config->wm, &text, error);
  const hn_cuda_kernel kernel = {"depth_chain", text.ptr, "depth_chain"};
  const int64_t blocks = c.cut.tiles < m->processors ? c.cut.tiles : m->processors;
  const hn_cuda_shape shape = {
      .grid = {(uint32_t)blocks, 1, 1}, .threads = THREADS, .shared = c.cut.shared, .overlap = true};
  if (!st) st = hn_cuda_launch(queue, &kernel, &shape, &args, sizeof args, error);
  hn_str_free(&text);
  return st;
}
