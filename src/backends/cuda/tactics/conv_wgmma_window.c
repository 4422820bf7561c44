/* Warpgroup products, convolutions of up to eight channels: window_wgmma.cu. */
#include <string.h>

#include "backends/cuda/common/epilogue.h"
#include "backends/cuda/common/functions.h"
#include "backends/cuda/common/product.h"
#include "backends/cuda/common/tensor_map.h"
#include "backends/cuda/common/wgmma.h"
#include "backends/cuda/tactics/window_wgmma_args.h"
#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"

enum { WIDE = 64, ROWS = 2, THREADS = 384, BOXES = 4, MOST_PAIRS = 4096 };

typedef struct problem {
  hn_product p;
  uint32_t bn, n16, n_tiles;
  uint32_t pairs, blocks; /* pairs of taps in a row of the kernel; blocks of four pairs */
  uint32_t segments, strips, images;
  uint32_t wide, high; /* of a box, in pixels of a plane */
  int64_t tiles;
  size_t shared;
} problem;

static uint32_t div_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

/* Taps of a row that lie in plane p of the pixels: first(p), first(p) + stride... */
static uint32_t first_tap(const hn_product_args *g, uint32_t p) {
  return (p + (uint32_t)g->pad_x) % (uint32_t)g->stride_x;
}
static uint32_t taps_of(const hn_product_args *g, uint32_t p) {
  const uint32_t first = first_tap(g, p), kw = (uint32_t)g->kernel_x;
  return first < kw ? div_up(kw - first, (uint32_t)g->stride_x) : 0;
}

static bool describe(const hone_step *s, const hone_machine *m, problem *q, hone_reason *why) {
  memset(q, 0, sizeof *q);
  if (m->arch != 90) return hn_refuse(why, "warpgroup products are arch 90's");
  if (!hn_product_of(s, &q->p, why)) return false;
  const hn_product_args *g = &q->p.args;
  if ((q->p.a_type != HONE_DTYPE_F16 && q->p.a_type != HONE_DTYPE_BF16) || q->p.out_type != q->p.a_type)
    return hn_refuse(why, "input and output are not both f16 or both bf16");
  if (!q->p.constant || q->p.c_type != HONE_DTYPE_NONE) return hn_refuse(why, "weights are not constant");
  if (!q->p.conv || g->n_batch != 1 || g->batch[0] != 1) return hn_refuse(why, "groups");
  if (g->in_z != 1 || g->kernel_z != 1 || g->grid_z != 1) return hn_refuse(why, "three spatial dimensions");
  if (g->tap != 8 || g->pixel != 8) return hn_refuse(why, "pixels are not 16 bytes");
  if (g->dilation_x != 1 || g->dilation_y != 1) return hn_refuse(why, "dilated");
  if (g->stride_x > 4 || g->stride_y > 4 || g->in_x % g->stride_x || g->pad_x < 0 || g->pad_y < 0)
    return hn_refuse(why, "stride beyond 4, or rows that are no multiple of it");
  if (g->image != (int64_t)g->in_x * g->in_y * g->pixel) return hn_refuse(why, "images are not dense");
  if (q->p.store != 8 || (g->n % 8 && g->out_pitch != (int64_t)hn_round_up(g->n, 8)))
    return hn_refuse(why, "rows of the output are not whole eights");
  for (uint32_t p = 0; p < (uint32_t)g->stride_x; p++) q->pairs += div_up(taps_of(g, p), 2);
  if ((uint64_t)q->pairs * (uint32_t)g->kernel_y > MOST_PAIRS)
    return hn_refuse(why, "a kernel of too many taps");
  q->blocks = div_up(q->pairs * (uint32_t)g->kernel_y, 4);
  q->n16 = (uint32_t)hn_round_up(g->n, 16), q->bn = q->n16 > 32 ? 64 : 32, q->n_tiles = div_up(q->n16, q->bn);
  q->segments = div_up(g->grid_x, WIDE), q->strips = div_up(g->grid_y, ROWS),
  q->images = g->m / (g->grid_x * g->grid_y);
  q->wide = WIDE + div_up((uint32_t)g->kernel_x, (uint32_t)g->stride_x) + 1;
  q->high = (ROWS - 1) * (uint32_t)g->stride_y + (uint32_t)g->kernel_y;
  if (q->wide > 256 || q->high > 256) return hn_refuse(why, "a kernel too large");
  q->tiles = (int64_t)q->images * q->segments * q->strips;
  if (q->tiles >= INT32_MAX / 2 || q->n_tiles > m->processors) return hn_refuse(why, "too many tiles");
  q->shared = (size_t)q->blocks * q->bn * 128 + 2 * ROWS * 64 * q->bn * 2 +
              BOXES * hn_round_up((size_t)q->high * q->wide * (uint32_t)g->stride_x * 16, 128) + 128;
  return q->shared <= m->shared_bytes || hn_refuse(why, "%zu bytes of shared memory", q->shared);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  problem q;
  return describe(s, m, &q, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  problem q;
  if (!describe(s, m, &q, NULL)) return 1e9;
  const double sms = m->processors, each = (double)(int64_t)(((double)q.tiles * q.n_tiles + sms - 1) / sms);
  const double flops = 2.0 * ROWS * WIDE * q.bn * 16 * q.pairs * q.p.args.kernel_y;
  const double tile = flops / (0.4 * m->half_flops / sms) + 0.5e-6,
               bytes = q.p.bytes / (0.75 * m->dram_bytes);
  return (each * tile > bytes ? each * tile : bytes) + 3e-6 + m->launch_s;
}

static size_t blob_bytes(const problem *q) { return (size_t)q->blocks * q->n16 * 128; }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  n->blob_bytes = blob_bytes(&q);
  n->packed = n->bytewise = 1u << 1;
  return HONE_OK;
}

/* K in the order of the products: kernel row, plane, tap of the plane (in whole pairs), channel. */
static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  problem q;
  hone_reason why = {""};
  if (!describe(s, m, &q, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", s->anchor, why.text);
  const hn_product_args *g = &q.p.args;
  memset(blob, 0, blob_bytes(&q));
  for (uint32_t r = 0; r < (uint32_t)g->kernel_y; r++)
    for (uint32_t plane = 0, pair = 0; plane < (uint32_t)g->stride_x;
         pair += div_up(taps_of(g, plane), 2), plane++)
      for (uint32_t i = 0; i < taps_of(g, plane); i++) {
        const uint32_t tap = r * (uint32_t)g->kernel_x + first_tap(g, plane) + i * (uint32_t)g->stride_x;
        const uint32_t k = (r * q.pairs + pair) * 16 + i * 8;
        for (uint32_t n = 0; n < g->n; n++)
          for (uint32_t c = 0; c < g->channels; c++)
            hn_wgmma_put(blob, q.n16, n, k + c, q.p.a_type,
                         hn_wgmma_weight(s, n * g->b_col + c * g->b_row + tap * g->b_tap));
      }
  return HONE_OK;
}

static hone_status write_prefix(const hone_step *s, const problem *q, hn_str *text, hone_error *error) {
  const hn_product_args *g = &q->p.args;
  hn_str_printf(text,
                "#define HN_T %s\n#define HN_WM %d\n#define HN_BN %u\n#define HN_KH %d\n#define HN_KW %d\n"
                "#define HN_STRIDE_H %d\n#define HN_STRIDE %d\n#define HN_PAD %d\n#define HN_PAIRS %u\n"
                "#define HN_BLOCKS %u\n#define HN_FAST_MATH 1\n",
                hn_cuda_type(q->p.a_type), ROWS, q->bn, g->kernel_y, g->kernel_x, g->stride_y, g->stride_x,
                g->pad_x, q->pairs, q->blocks);
  return hn_cuda_epilogue_fragments(s, q->p.bias, -1, text, error);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(r);
  const hone_machine *m = hn_cuda_machine(queue);
  problem q;
  hone_reason why = {""};
  if (!describe(r->step, m, &q, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: %s", r->step->anchor, why.text);
  if (!hn_product_aligned(r->in[0]) || !hn_product_aligned(r->out[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", r->step->anchor);
  const hn_product_args *g = &q.p.args;
  const uint64_t stride = (uint64_t)g->stride_x, w = (uint64_t)g->in_x, h = (uint64_t)g->in_y;
  hn_window_wgmma_args a;
  memset(&a, 0, sizeof a);
  /* (channel, pixel of the plane, plane, row, image) */
  const hn_cuda_box x = {.rank = 5,
                         .dim = {8, w / stride, stride, h, q.images},
                         .pitch = {8 * (int64_t)stride, 8, 8 * (int64_t)w, 8 * (int64_t)(w * h)},
                         .box = {8, q.wide, (uint32_t)stride, q.high, 1},
                         .swizzle = 0};
  const hn_cuda_box y = {.rank = 3,
                         .dim = {hn_round_up(g->n, 8), g->grid_x, (uint64_t)q.images * g->grid_y},
                         .pitch = {g->out_pitch, g->out_pitch * g->grid_x},
                         .box = {q.bn, WIDE, 1},
                         .swizzle = q.bn * 2};
  hone_status st = hn_cuda_map_box(queue, &a.x, q.p.a_type, r->in[0], &x, error);
  if (!st) st = hn_cuda_map_box(queue, &a.out, q.p.a_type, r->out[0], &y, error);
  a.weights = r->blob;
  hn_cuda_epilogue_bind(r, q.p.bias, &a.epilogue);
  a.y_pixel = g->out_pitch;
  a.n8 = (i32)(q.n16 / 8), a.n_tiles = (i32)q.n_tiles, a.segments = (i32)q.segments, a.strips = (i32)q.strips;
  a.tiles = (i32)q.tiles, a.oh = (i32)g->grid_y, a.ow = (i32)g->grid_x, a.pad_h = g->pad_y;
  a.first = -(i32)div_up((uint32_t)g->pad_x, (uint32_t)stride);
  hn_str text = {0};
  if (!st) st = write_prefix(r->step, &q, &text, error);
  const int64_t most = m->processors / q.n_tiles, lines = q.tiles < most ? q.tiles : most;
  const hn_cuda_kernel kernel = {"window_wgmma", text.ptr, "window_wgmma"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)lines * q.n_tiles, 1, 1},
                               .threads = THREADS,
                               .shared = (uint32_t)q.shared,
                               .overlap = true};
  if (!st) st = hn_cuda_launch(queue, &kernel, &shape, &a, sizeof a, error);
  hn_str_free(&text);
  return st;
}

const struct hone_tactic_desc hn_cuda_tactic_conv_wgmma_window = {HONE_DESC_HEAD(hone_tactic_desc),
                                                                  .name = "conv_wgmma_window",
                                                                  .device = "cuda",
                                                                  .anchor = "Conv",
                                                                  .version = 1,
                                                                  .accepts = accepts,
                                                                  .cost = cost,
                                                                  .need = need,
                                                                  .prepack = prepack,
                                                                  .run = run};
