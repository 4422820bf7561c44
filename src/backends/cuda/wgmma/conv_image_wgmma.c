/* Conv of images by products of warpgroups (conv_image_wgmma.cu): windows that begin one or two pixels apart,
 * epilogues that read vectors alone. */
#include "backends/cuda/wgmma/conv_image_wgmma.h"

#include "backends/cuda/product/conv_image.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum {
  GROUPS = 2,
  RESERVED = 1024, /* bytes of shared memory that a block takes beside its own */
  MOST_BUFFERS = 4,
  MOST_PIXELS = 64, /* of an operand: sums and the weights of a wide kernel in 128 registers */
  MOST_STEPS = 16
};

static int64_t shared_of(const hn_conv_attr *a, const hn_image_plan *p) {
  const int64_t rows = (GROUPS * p->rows - 1) * a->stride[1] + a->kernel[1],
                cols = hn_fill_up((p->parts * p->n - 1) * a->stride[2] + p->win, 2),
                copies = a->stride[2] == 1 ? 2 : 1;
  return p->buffers * copies * rows * cols * 8 + GROUPS * p->parts * p->n * (p->codes ? 80 : 144);
}

static hn_image_plan choose(const hone_machine *m, const hn_conv_attr *a, bool codes) {
  hn_image_plan p = {.win = hn_fill_up(a->kernel[2], 4), .bn = a->cout <= 32 ? 32 : 64, .codes = codes};
  p.rows = 64 / p.bn;
  p.steps = (a->kernel[1] + (p.rows - 1) * a->stride[1]) * p.win / 4;
  p.blocks = hn_div_up(a->cout, p.bn);
  p.parts = a->stride[2] == 1 || a->y.size[2] > MOST_PIXELS ? 2 : 1;
  p.tiles_w = hn_div_up(a->y.size[2], p.parts * MOST_PIXELS);
  p.n = p.tiles_w ? hn_fill_up(hn_div_up(a->y.size[2], p.tiles_w * p.parts), codes ? 16 : 8) : 16;
  p.tiles_h = hn_div_up(a->y.size[1], GROUPS * p.rows);
  p.tiles = p.tiles_w * p.tiles_h * a->x.batch;
  /* Registers for two blocks, for three with little of K; then as many tiles as fit beside each other. */
  const int64_t most = p.steps > 6 ? 2 : 3;
  for (p.buffers = MOST_BUFFERS;; p.buffers--) {
    p.shared = shared_of(a, &p);
    p.resident = (int64_t)m->shared_bytes / (p.shared + RESERVED);
    if (p.resident >= most || p.buffers == 2) break;
  }
  if (p.resident > most) p.resident = most;
  if (p.resident < 1) p.resident = 1;
  return p;
}

bool hn_image_plan_of(const hone_machine *m, const hn_conv_attr *a, bool codes, hn_image_plan *p,
                      hone_reason *why) {
  if (m->arch != 90) return hn_refuse(why, "no products of warpgroups: architecture 90 has them");
  if (a->stride[2] > 2) return hn_refuse(why, "windows more than two pixels apart");
  *p = choose(m, a, codes);
  if (p->steps > MOST_STEPS) return hn_refuse(why, "more than %d products of 16 a window", MOST_STEPS);
  if (p->shared > (int64_t)m->shared_bytes) return hn_refuse(why, "its tile does not fit into shared memory");
  if (p->tiles > INT32_MAX / 2 || p->blocks > 65535) return hn_refuse(why, "too many tiles");
  return true;
}

double hn_image_seconds(const hone_machine *m, const hn_image_plan *p, double bytes) {
  const double flops =
      2.0 * (double)(p->tiles * GROUPS * p->parts * p->n) * (double)(p->blocks * 64 * p->steps * 16);
  return hn_cuda_seconds(m, flops, m->half_flops * 0.6, bytes, 0.7) + 0.9e-6;
}

size_t hn_image_weights(const hn_image_plan *p) { return (size_t)(p->blocks * p->steps) * 64 * 32; }

/* A thread's part of a product's left operand: of rows r and r + 8 (of a warp's 16) four bytes of K each,
 * then both 16 bytes of K further. Row r is channel r % bn of output row r / bn, whose kernel begins as many
 * rows lower; eight bytes of a kernel's row are a pixel. Of codes rows r and r + 8 are channels 2 r and 2 r
 * + 1. */
hn_image_weight hn_image_weight_of(const hn_image_plan *p, const hn_conv_attr *a, int64_t block, int64_t step,
                                   int64_t thread, int64_t byte) {
  const int64_t r = thread % 32 / 4, h = byte / 4 % 2,
                row = thread / 32 * 16 + (p->codes ? 2 * r + h : r + h * 8),
                k = thread % 4 * 4 + byte % 4 + byte / 8 * 16;
  return (hn_image_weight){.n = block * p->bn + row % p->bn,
                           .y = step / (p->win / 4) - row / p->bn * a->stride[1],
                           .x = step % (p->win / 4) * 4 + k / 8,
                           .c = p->codes ? k % 8 : k % 8 / 2};
}

void hn_image_prefix(const hn_conv_attr *a, const hn_image_plan *p, hn_str *t) {
  hn_str_printf(t,
                "#define HN_KH %lld\n#define HN_WIN %lld\n#define HN_SH %lld\n#define HN_SW %lld\n"
                "#define HN_BN %lld\n#define HN_GROUPS %d\n#define HN_N %lld\n#define HN_PARTS %lld\n"
                "#define HN_BUFFERS %lld\n#define HN_RESIDENT %lld\n#define HN_PIXEL %lld\n",
                (long long)a->kernel[1], (long long)p->win, (long long)a->stride[1], (long long)a->stride[2],
                (long long)p->bn, GROUPS, (long long)p->n, (long long)p->parts, (long long)p->buffers,
                (long long)p->resident, (long long)a->x.view.pixel);
}

hone_status hn_image_launch(const hone_step_run *r, const hn_image_plan *p, hn_conv_image_args *g,
                            const hn_str *text, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_machine *m = hn_cuda_machine(q);
  if (text->failed) return hn_fail_memory(error, text->cap, "device text");
  g->tiles_w = (i32)p->tiles_w, g->tiles_h = (i32)p->tiles_h, g->tiles = (i32)p->tiles;
  const int64_t room = hn_div_up(p->resident * (m->processors ? m->processors : 132), p->blocks);
  const hn_cuda_kernel kernel = {"conv_image_wgmma", text->ptr, "hn_conv_image"};
  const hn_cuda_shape shape = {
      .grid = {(uint32_t)(p->tiles < room ? p->tiles : room), (uint32_t)p->blocks, 1},
      .threads = GROUPS * 128,
      .shared = (uint32_t)p->shared,
      .overlap = true};
  return hn_cuda_launch(q, &kernel, &shape, g, sizeof *g, error);
}

static bool describe(const hone_step *s, const hone_machine *m, hn_conv_attr *a, hn_image_plan *p,
                     hone_reason *why) {
  if (!hn_conv_image_read(s, a, why)) return false;
  if (hn_cuda_epilogue_tensors(s)) return hn_refuse(why, "its epilogue reads a tensor");
  return hn_image_plan_of(m, a, false, p, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  hn_image_plan p;
  return describe(s, m, &a, &p, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  hn_image_plan p;
  if (!describe(s, m, &a, &p, NULL)) return 1;
  return hn_image_seconds(m, &p, hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s));
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  hn_image_plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = hn_image_weights(&p);
  n->packed = 1u << 1;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_image_weights w;
  hn_conv_attr a;
  hn_image_plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  uint16_t *to = blob;
  const hone_status status = hn_conv_image_weights_open(s, &a, &w, error);
  if (status != HONE_OK) return status;
  for (int64_t b = 0; b < p.blocks; b++)
    for (int64_t step = 0; step < p.steps; step++)
      for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 8; i++, to++) {
          const hn_image_weight at = hn_image_weight_of(&p, &a, b, step, thread, i * 2);
          *to = hn_conv_image_weight(&w, at.n, at.y, at.x, at.c);
        }
  hn_conv_image_weights_close(&w);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_conv_attr a;
  hn_image_plan p;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(r)), &a, &p, &why))
    return hn_not_described(s, &why, error);
  if (!p.tiles || !p.blocks) return HONE_OK;
  hn_conv_image_args g;
  hn_conv_image_bind(r, &a, &g);
  const char *type = s->input[0].desc.dtype == HONE_DTYPE_F16 ? "f16" : "bf16";
  hn_str text = {0};
  hn_cuda_define_type(&text, s->input[0].desc.dtype);
  hn_image_prefix(&a, &p, &text);
  hn_str_printf(&text, "#define HN_PAIR hn_to_%sx2\n#include \"prelude.cuh\"\n", type);
  hn_wgmma_write_product(&text, "hn_wgmma_first", type, p.n, false);
  hn_wgmma_write_product(&text, "hn_wgmma_add", type, p.n, true);
  hone_status status = hn_cuda_epilogue_fragments(s, 2, -1, &text, error);
  if (status == HONE_OK) status = hn_image_launch(r, &p, &g, &text, error);
  hn_str_free(&text);
  return status;
}

HN_TACTIC(cuda, conv_image_wgmma, "Conv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
