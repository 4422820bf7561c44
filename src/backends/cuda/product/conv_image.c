/* Conv of images: up to four channels in, f16 or bf16 (conv_image.cu). */
#include "backends/cuda/product/conv_image.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

/* How a step is run; names as in conv_image.cu. */
typedef struct plan {
  int64_t win, steps, bn, blocks; /* blocks: of bn channels */
  uint32_t warps;
  int64_t tiles_w, tiles_h, tiles;
} plan;

static uint32_t shared_of(const hn_conv_attr *a, const plan *p) {
  const int64_t rows = (p->warps - 1) * a->stride[1] + a->kernel[1],
                cols = (31 * a->stride[2] + p->win + 1) / 2 * 2, copies = a->stride[2] % 2 ? 2 : 1,
                copy = hn_fill_up(rows * cols * 8, 128) + 64;
  return (uint32_t)(p->steps * p->bn * 32 + copies * copy / 16 * 16 + 16 + p->warps * 32 * (p->bn + 8) * 2);
}

static plan choose(const hone_machine *m, const hn_conv_attr *a) {
  const int64_t processors = m->processors ? m->processors : 108;
  plan p = {.win = hn_fill_up(a->kernel[2], 4), .bn = a->cout <= 32 ? 32 : 64};
  p.steps = a->kernel[1] * p.win / 4;
  p.blocks = hn_div_up(a->cout, p.bn);
  p.tiles_w = hn_div_up(a->y.size[2], 32);
  for (p.warps = 8;; p.warps = 4) { /* few tiles: smaller ones */
    p.tiles_h = hn_div_up(a->y.size[1], p.warps);
    p.tiles = p.tiles_w * p.tiles_h * a->x.batch;
    if (p.warps == 4 || (p.tiles * p.blocks >= 2 * processors && shared_of(a, &p) <= m->shared_bytes))
      return p;
  }
}

static bool describe(const hone_step *s, const hone_machine *m, hn_conv_attr *a, hone_reason *why) {
  if (!hn_conv_image_read(s, a, why)) return false;
  plan p = choose(m, a);
  if (shared_of(a, &p) > m->shared_bytes) return hn_refuse(why, "its tile does not fit into shared memory");
  if (p.tiles > INT32_MAX / 2 || p.blocks > 65535) return hn_refuse(why, "too many tiles");
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  return hn_cuda_tensor_cores(m, s->input[0].desc.dtype, why) && describe(s, m, &a, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  hone_reason why;
  if (!describe(s, m, &a, &why)) return 1;
  const plan p = choose(m, &a);
  const double flops = 2.0 * (double)(p.tiles * p.warps * 32) * (double)(p.blocks * p.bn * p.steps * 16);
  return hn_cuda_seconds(m, flops, m->half_flops * 0.33, hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s),
                         m->arch == 90 ? 0.5 : 0.7) +
         0.9e-6;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, m, &a, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "conv_image: %s", why.text);
  const plan p = choose(m, &a);
  n->blob_bytes = (size_t)(p.blocks * p.steps * p.bn) * 32;
  n->packed = 1u << 1;
  return HONE_OK;
}

/* A thread's part of a product's right operand: of columns n and n + 8, rows 2t, 2t + 1, 2t + 8, 2t + 9. Row
 * k is channel k % 4 of the window's pixel k / 4. */
static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_image_weights w;
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, m, &a, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "conv_image: %s", why.text);
  const plan p = choose(m, &a);
  uint16_t *to = blob;
  hone_status status = hn_conv_image_weights_open(s, &a, &w, error);
  if (status != HONE_OK) return status;
  for (int64_t b = 0; b < p.blocks; b++)
    for (int64_t step = 0; step < p.steps; step++)
      for (int64_t tile = 0; tile < p.bn / 16; tile++)
        for (int64_t lane = 0; lane < 32; lane++)
          for (int64_t i = 0; i < 8; i++, to++) {
            const int64_t n = b * p.bn + tile * 16 + i / 4 * 8 + lane / 4,
                          k = lane % 4 * 2 + i % 2 + i / 2 % 2 * 8;
            *to = hn_conv_image_weight(&w, n, step / (p.win / 4), step % (p.win / 4) * 4 + k / 4, k % 4);
          }
  hn_conv_image_weights_close(&w);
  return HONE_OK;
}

static hone_status prefix(const hone_step *s, const hn_conv_attr *a, const plan *p, hn_str *t,
                          hone_error *error) {
  const bool half = s->input[0].desc.dtype == HONE_DTYPE_F16;
  hn_cuda_define_type(t, s->input[0].desc.dtype);
  hn_str_printf(t,
                "#define HN_KH %lld\n#define HN_WIN %lld\n#define HN_SH %lld\n#define HN_SW %lld\n"
                "#define HN_BN %lld\n#define HN_WARPS %u\n#define HN_PAIR hn_to_%sx2\n"
                "#define HN_PRODUCT hn_mma_%s\n",
                (long long)a->kernel[1], (long long)p->win, (long long)a->stride[1], (long long)a->stride[2],
                (long long)p->bn, p->warps, half ? "f16" : "bf16", half ? "f16" : "bf16");
  return hn_cuda_epilogue_fragments(s, 2, -1, t, error);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_machine *m = hn_cuda_machine(q);
  hn_conv_attr a;
  hone_reason why = {""};
  if (!describe(s, m, &a, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "conv_image: %s", why.text);
  const plan p = choose(m, &a);
  if (!p.tiles || !p.blocks) return HONE_OK;
  hn_conv_image_args g;
  hn_conv_image_bind(r, &a, &g);
  g.tiles_w = (i32)p.tiles_w, g.tiles_h = (i32)p.tiles_h, g.tiles = (i32)p.tiles;
  const uint32_t shared = shared_of(&a, &p), processors = m->processors ? m->processors : 108;
  uint32_t resident = (uint32_t)(m->shared_bytes / (shared + 1024)); /* blocks of a multiprocessor */
  if (resident > 2048 / (p.warps * 32)) resident = 2048 / (p.warps * 32);
  if (resident < 1) resident = 1;
  uint32_t blocks = (resident * processors + (uint32_t)p.blocks - 1) / (uint32_t)p.blocks;
  if (blocks > p.tiles) blocks = (uint32_t)p.tiles;
  hn_str text = {0};
  hone_status status = prefix(s, &a, &p, &text, error);
  if (status == HONE_OK) {
    const hn_cuda_kernel kernel = {"conv_image", text.ptr, "hn_conv_image"};
    const hn_cuda_shape shape = {
        .grid = {blocks, (uint32_t)p.blocks, 1}, .threads = p.warps * 32, .shared = shared, .overlap = true};
    status = hn_cuda_launch(q, &kernel, &shape, &g, sizeof g, error);
  }
  hn_str_free(&text);
  return status;
}

HN_TACTIC(cuda, conv_image, "Conv", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
