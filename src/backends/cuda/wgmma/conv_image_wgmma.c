/* Conv of images by products of warpgroups (conv_image_wgmma.cu): windows that begin one or two pixels apart,
 * epilogues that read vectors alone. */
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
  MOST_STEPS = 16,
  PITCH = 144
};

/* How a step is run; names as in conv_image_wgmma.cu. */
typedef struct plan {
  int64_t win, steps, bn, blocks; /* blocks: of bn channels */
  int64_t rows;                   /* of the output, of a warpgroup */
  int64_t n, parts, buffers, resident;
  int64_t tiles_w, tiles_h, tiles;
  int64_t shared; /* bytes */
} plan;

static int64_t shared_of(const hn_conv_attr *a, const plan *p) {
  const int64_t rows = (GROUPS * p->rows - 1) * a->stride[1] + a->kernel[1],
                cols = hn_fill_up((p->parts * p->n - 1) * a->stride[2] + p->win, 2),
                copies = a->stride[2] == 1 ? 2 : 1;
  return p->buffers * copies * rows * cols * 8 + GROUPS * p->parts * p->n * PITCH;
}

static plan choose(const hone_machine *m, const hn_conv_attr *a) {
  plan p = {.win = hn_fill_up(a->kernel[2], 4), .bn = a->cout <= 32 ? 32 : 64};
  p.rows = 64 / p.bn;
  p.steps = (a->kernel[1] + (p.rows - 1) * a->stride[1]) * p.win / 4;
  p.blocks = hn_div_up(a->cout, p.bn);
  p.parts = a->stride[2] == 1 || a->y.size[2] > MOST_PIXELS ? 2 : 1;
  p.tiles_w = hn_div_up(a->y.size[2], p.parts * MOST_PIXELS);
  p.n = p.tiles_w ? hn_fill_up(hn_div_up(a->y.size[2], p.tiles_w * p.parts), 8) : 8;
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

static bool describe(const hone_step *s, const hone_machine *m, hn_conv_attr *a, plan *p, hone_reason *why) {
  if (m->arch != 90) return hn_refuse(why, "no products of warpgroups: architecture 90 has them");
  if (!hn_conv_image_read(s, a, why)) return false;
  if (a->stride[2] > 2) return hn_refuse(why, "windows more than two pixels apart");
  if (hn_cuda_epilogue_tensors(s)) return hn_refuse(why, "its epilogue reads a tensor");
  *p = choose(m, a);
  if (p->steps > MOST_STEPS) return hn_refuse(why, "more than %d products of 16 a window", MOST_STEPS);
  if (p->shared > (int64_t)m->shared_bytes) return hn_refuse(why, "its tile does not fit into shared memory");
  if (p->tiles > INT32_MAX / 2 || p->blocks > 65535) return hn_refuse(why, "too many tiles");
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  plan p;
  return describe(s, m, &a, &p, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  plan p;
  if (!describe(s, m, &a, &p, NULL)) return 1;
  const double flops =
      2.0 * (double)(p.tiles * GROUPS * p.parts * p.n) * (double)(p.blocks * 64 * p.steps * 16);
  return hn_cuda_seconds(m, flops, m->half_flops * 0.6, hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s), 0.7) +
         0.9e-6;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = (size_t)(p.blocks * p.steps) * 64 * 32;
  n->packed = 1u << 1;
  return HONE_OK;
}

/* A thread's part of a product's left operand: of rows r and r + 8 (of a warp's 16) products 2t and 2t + 1,
 * then both eight products further. Row r is channel r % bn of output row r / bn, whose kernel begins as many
 * rows lower; product k of a kernel's row is channel k % 4 of the window's pixel k / 4. */
static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_image_weights w;
  hn_conv_attr a;
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  uint16_t *to = blob;
  const hone_status status = hn_conv_image_weights_open(s, &a, &w, error);
  if (status != HONE_OK) return status;
  for (int64_t b = 0; b < p.blocks; b++)
    for (int64_t step = 0; step < p.steps; step++)
      for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 8; i++, to++) {
          const int64_t row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
                        k = thread % 4 * 2 + i % 2 + i / 4 * 8,
                        y = step / (p.win / 4) - row / p.bn * a.stride[1], x = step % (p.win / 4) * 4 + k / 4;
          *to = hn_conv_image_weight(&w, b * p.bn + row % p.bn, y, x, k % 4);
        }
  hn_conv_image_weights_close(&w);
  return HONE_OK;
}

static hone_status prefix(const hone_step *s, const hn_conv_attr *a, const plan *p, hn_str *t,
                          hone_error *error) {
  const char *type = s->input[0].desc.dtype == HONE_DTYPE_F16 ? "f16" : "bf16";
  hn_cuda_define_type(t, s->input[0].desc.dtype);
  hn_str_printf(t,
                "#define HN_KH %lld\n#define HN_WIN %lld\n#define HN_SH %lld\n#define HN_SW %lld\n"
                "#define HN_BN %lld\n#define HN_GROUPS %d\n#define HN_N %lld\n#define HN_PARTS %lld\n"
                "#define HN_BUFFERS %lld\n#define HN_RESIDENT %lld\n#define HN_PIXEL %lld\n"
                "#define HN_PAIR hn_to_%sx2\n#include \"prelude.cuh\"\n",
                (long long)a->kernel[1], (long long)p->win, (long long)a->stride[1], (long long)a->stride[2],
                (long long)p->bn, GROUPS, (long long)p->n, (long long)p->parts, (long long)p->buffers,
                (long long)p->resident, (long long)a->x.view.pixel, type);
  hn_wgmma_write_product(t, "hn_wgmma_first", type, p->n, false);
  hn_wgmma_write_product(t, "hn_wgmma_add", type, p->n, true);
  return hn_cuda_epilogue_fragments(s, 2, -1, t, error);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_machine *m = hn_cuda_machine(q);
  hn_conv_attr a;
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  if (!p.tiles || !p.blocks) return HONE_OK;
  hn_conv_image_args g;
  hn_conv_image_bind(r, &a, &g);
  g.tiles_w = (i32)p.tiles_w, g.tiles_h = (i32)p.tiles_h, g.tiles = (i32)p.tiles;
  const int64_t room = hn_div_up(p.resident * (m->processors ? m->processors : 132), p.blocks);
  hn_str text = {0};
  hone_status status = prefix(s, &a, &p, &text, error);
  if (status == HONE_OK) {
    const hn_cuda_kernel kernel = {"conv_image_wgmma", text.ptr, "hn_conv_image"};
    const hn_cuda_shape shape = {.grid = {(uint32_t)(p.tiles < room ? p.tiles : room), (uint32_t)p.blocks, 1},
                                 .threads = GROUPS * 128,
                                 .shared = (uint32_t)p.shared,
                                 .overlap = true};
    status = hn_cuda_launch(q, &kernel, &shape, &g, sizeof g, error);
  }
  hn_str_free(&text);
  return status;
}

HN_TACTIC(cuda, conv_image_wgmma, "Conv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
