/* Conv of few channels by products of warpgroups on strips of pixels (conv_strip.cu): kernels of several
 * taps, whose pixels tiles would fetch again for each of them. */
#include "backends/cuda/wgmma/conv_strip.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/product/conv_image.h"
#include "backends/cuda/product/product.h"
#include "backends/cuda/wgmma/tensor_map.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum {
  GROUPS = 2,
  BLOCK = 64,            /* channels that a block makes */
  LEAST_CHANNELS = 9,    /* of x: fewer are images' (conv_image_wgmma.c) */
  MOST_BYTES = 128,      /* of a pixel of x */
  MOST_REGISTERS = 176,  /* of a thread's 224: its weights and sums */
  MOST_BOX = 256,        /* pixels of a copy */
  MOST_PIXELS = 128,     /* of an operand */
  MOST_STRIPS = 64,      /* of an image */
  MOST_ROWS = 8,         /* in the ring, or what two lines of a large kernel take: more only come too early */
  RESERVED = 1024 + 512, /* bytes of shared memory beside panels and rows: the system's, barriers */
};

static bool read_step(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!hn_cuda_stored(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  hn_conv_attr_flatten(a);
  if (s->input[0].desc.dtype == HONE_DTYPE_F32) return hn_refuse(why, "f32 pixels");
  if (!s->input[1].constant || !hn_cuda_type(s->input[1].desc.dtype))
    return hn_refuse(why, "weights are not constant numbers of a floating type");
  if (hn_cuda_has(s, 2) && !hn_cuda_type(s->input[2].desc.dtype))
    return hn_refuse(why, "the bias is no vector of a floating type");
  if (a->x.view.pixel % 8 || a->x.view.row % 8 || a->x.view.batch % 8 || a->y.view.pixel % 8 ||
      a->y.view.row % 8 || a->y.view.batch % 8 || a->y.view.pixel < hn_fill_up(a->cout, 8) ||
      (a->cout % 8 && a->y.view.pixel != hn_fill_up(a->cout, 8)))
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  return hn_cuda_epilogue_accepts(s, why);
}

/* The widest strips whose sums fit into registers, and whose rows into the ring. */
static bool cut(const hone_machine *m, const hn_conv_attr *a, hn_strip_plan *p) {
  const int64_t each = p->size == 1 ? 16 : 8; /* products of codes have no others */
  const int64_t room = (MOST_REGISTERS - 4 * p->steps) * 2 / each * each,
                box = (MOST_BOX - (a->kernel[2] - 1) / a->stride[2]) / (each * GROUPS) * each,
                least = a->kernel[1] + a->stride[1], rows = least + 2 > MOST_ROWS ? least + 2 : MOST_ROWS;
  int64_t most = room < MOST_PIXELS ? room : MOST_PIXELS;
  if (most > box) most = box;
  if (most < each) return false;
  for (p->strips = hn_div_up(a->y.size[2], GROUPS * most); p->strips <= MOST_STRIPS; p->strips++) {
    p->n = hn_fill_up(hn_div_up(a->y.size[2], p->strips * GROUPS), each);
    p->pixels = GROUPS * p->n + (a->kernel[2] - 1) / a->stride[2];
    p->row = a->stride[2] * hn_fill_up(p->pixels * p->channels * p->size, 1024);
    const int64_t panels = GROUPS * p->buffers * p->n * BLOCK * p->size,
                  left = (int64_t)m->shared_bytes - RESERVED - panels;
    p->rows = left / p->row < rows ? left / p->row : rows;
    if (p->rows < least) continue;
    p->shared = panels + p->rows * (p->row + 16) + 8 * GROUPS * (p->buffers + 1) +
                (p->bordered ? GROUPS * p->n * 2 : 0);
    return true;
  }
  return false;
}

bool hn_strip_plan_of(const hone_machine *m, const hn_conv_attr *a, hn_strip_plan *p, hone_reason *why) {
  if (m->arch != 90) return hn_refuse(why, "no products of warpgroups: architecture 90 has them");
  if (a->groups != 1 || a->cin * p->size > MOST_BYTES || a->cin < LEAST_CHANNELS)
    return hn_refuse(why, "%lld groups of %lld channels: it takes one of %d to %d", (long long)a->groups,
                     (long long)a->cin, LEAST_CHANNELS, MOST_BYTES / (int)p->size);
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->dilation[1] != 1 || a->dilation[2] != 1) return hn_refuse(why, "dilated");
  if (a->kernel[1] * a->kernel[2] < 2) return hn_refuse(why, "one tap: a product of matrices");
  if (a->stride[1] > a->kernel[1] || a->stride[2] > 2 || a->stride[2] > a->x.size[2])
    return hn_refuse(why, "rows that no tap reads, or pixels more than two apart");
  for (p->channels = 32 / p->size; p->channels < a->cin;) p->channels *= 2;
  p->steps = a->kernel[1] * a->kernel[2] * p->channels * p->size / 32;
  p->blocks = hn_div_up(a->cout, BLOCK);
  p->buffers = p->staged ? 2 : 1;
  if (!cut(m, a, p))
    return hn_refuse(why, "%lld products of 16 a pixel: too many, or rows too wide", (long long)p->steps);
  p->lines = a->x.batch * p->strips * a->y.size[1];
  if (p->lines < 1 || p->lines > INT32_MAX / 2 || p->blocks > 1024)
    return hn_refuse(why, "no or too many lines");
  p->grid = hn_div_up(m->processors ? m->processors : 132, p->blocks);
  if (p->grid > p->lines) p->grid = p->lines;
  return true;
}

/* Fitted to 13 layers on one H200 (docs/log/perf-log-hopper.md): few pixels do not fill the tensor cores
 * while a warpgroup has its turn. */
double hn_strip_seconds(const hone_machine *m, const hn_strip_plan *p, double bytes) {
  const double sms = m->processors ? m->processors : 132, half = m->half_flops > 0 ? m->half_flops : 1e15,
               dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12;
  const double rounds = ceil((double)p->lines / (double)p->grid) * ceil((double)(p->grid * p->blocks) / sms);
  const double busy = fmin(0.9, 0.28 + 0.01 * (double)p->n);
  const double multiply =
      2.0 * BLOCK * (double)(GROUPS * p->n * p->steps) * 16 / (busy * half / sms) + 0.2e-6;
  /* Codes take longer to make than to multiply; where they pass through tables or sums neither hides the
   * other. */
  const bool slow = p->staged || p->table;
  const double leave = p->size > 1 ? 0 : (double)(GROUPS * p->n * BLOCK) * (slow ? 0.25e-9 : 0.17e-9),
               line = slow ? multiply + leave : fmax(multiply, leave);
  const double memory = bytes / (0.88 * dram), time = rounds * line;
  return cbrt(time * time * time + memory * memory * memory) + 0.8e-6 + m->launch_s;
}

size_t hn_strip_weights(const hn_strip_plan *p) { return (size_t)(p->blocks * p->steps) * BLOCK * 32; }

/* A thread's part of a product's left operand: of rows r and r + 8 (of a warp's 16) four bytes of K each,
 * then both 16 bytes of K further. Of codes these rows are channels 2 r and 2 r + 1. */
hn_strip_weight hn_strip_weight_of(const hn_strip_plan *p, int64_t block, int64_t step, int64_t thread,
                                   int64_t byte) {
  const int64_t each = p->channels * p->size / 32, r = thread % 32 / 4, h = byte / 4 % 2,
                k = thread % 4 * 4 + byte % 4 + byte / 8 * 16;
  return (hn_strip_weight){.n = block * BLOCK + thread / 32 * 16 + (p->size == 1 ? 2 * r + h : r + h * 8),
                           .tap = step / each,
                           .c = (step % each * 32 + k) / p->size};
}

void hn_strip_prefix(const hn_conv_attr *a, const hn_strip_plan *p, hn_str *t) {
  hn_str_printf(t,
                "#define HN_CIN %lld\n#define HN_KH %lld\n#define HN_KW %lld\n#define HN_SH %lld\n"
                "#define HN_SW %lld\n#define HN_N %lld\n#define HN_ROWS %lld\n"
                "#define HN_BUFFERS %lld\n#define HN_STAGED %d\n#include \"prelude.cuh\"\n",
                (long long)p->channels, (long long)a->kernel[1], (long long)a->kernel[2],
                (long long)a->stride[1], (long long)a->stride[2], (long long)p->n, (long long)p->rows,
                (long long)p->buffers, p->staged);
}

static hone_status maps_of(const hone_step_run *r, const hn_conv_attr *a, const hn_strip_plan *p,
                           const void *added, hn_conv_strip_args *g, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_dtype type = r->step->output[0].desc.dtype;
  const int64_t vector = 16 / p->size;
  hone_status st = HONE_OK;
  for (int64_t odd = 0; odd < a->stride[2] && !st; odd++) {
    const hn_cuda_image x = {.channels = (uint32_t)a->cin,
                             .w = (uint32_t)hn_div_up(a->x.size[2] - odd, a->stride[2]),
                             .h = (uint32_t)a->x.size[1],
                             .n = (uint32_t)a->x.batch,
                             .pixel = a->x.view.pixel * a->stride[2],
                             .row = a->x.view.row,
                             .image = a->x.view.batch,
                             .box = {(uint32_t)p->channels, (uint32_t)p->pixels, 1, 1}};
    const char *at = (const char *)r->in[0] + odd * a->x.view.pixel * p->size;
    st = hn_cuda_map_image(q, odd ? &g->odd : &g->x, type, at, &x, true, error);
  }
  const hn_cuda_image y = {.channels = (uint32_t)hn_fill_up(a->cout, vector),
                           .w = (uint32_t)a->y.size[2],
                           .h = (uint32_t)a->y.size[1],
                           .n = (uint32_t)a->y.batch,
                           .pixel = a->y.view.pixel,
                           .row = a->y.view.row,
                           .image = a->y.view.batch,
                           .box = {BLOCK, (uint32_t)p->n, 1, 1}};
  if (!st) st = hn_cuda_map_image(q, &g->out, type, r->out[0], &y, true, error);
  if (!st && p->staged) st = hn_cuda_map_image(q, &g->staged, type, added, &y, true, error);
  return st;
}

hone_status hn_strip_launch(const hone_step_run *r, const hn_conv_attr *a, const hn_strip_plan *p,
                            const void *added, hn_conv_strip_args *g, const hn_str *text, hone_error *error) {
  if (!hn_product_aligned(r->in[0]) || !hn_product_aligned(r->out[0]) ||
      (p->staged && !hn_product_aligned(added)))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", r->step->anchor);
  if (text->failed) return hn_fail_memory(error, text->cap, "device text");
  g->w = r->blob;
  g->out_h = (i32)a->y.size[1], g->out_w = (i32)a->y.size[2];
  g->pad_h = (i32)a->pad[1], g->pad_w = (i32)a->pad[2];
  g->strips = (i32)p->strips, g->lines = (i32)p->lines;
  const hone_status st = maps_of(r, a, p, added, g, error);
  const hn_cuda_kernel kernel = {"conv_strip", text->ptr, "conv_strip"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)p->grid, (uint32_t)p->blocks, 1},
                               .threads = (GROUPS + 1) * 128,
                               .shared = (uint32_t)p->shared,
                               .overlap = true};
  return st ? st : hn_cuda_launch(hn_cuda_queue_of(r), &kernel, &shape, g, sizeof *g, error);
}

static bool describe(const hone_step *s, const hone_machine *m, hn_conv_attr *a, hn_strip_plan *p,
                     hone_reason *why) {
  if (!read_step(s, a, why)) return false;
  *p = (hn_strip_plan){.staged = hn_cuda_epilogue_staged(s) >= 0, .size = 2};
  if (hn_cuda_epilogue_tensors(s) > p->staged)
    return hn_refuse(why, "its epilogue reads tensors that do not come as the output leaves");
  return hn_strip_plan_of(m, a, p, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_conv_attr a;
  hn_strip_plan p;
  return describe(s, m, &a, &p, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  hn_strip_plan p;
  if (!describe(s, m, &a, &p, NULL)) return 1;
  return hn_strip_seconds(m, &p, hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s));
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_conv_attr a;
  hn_strip_plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = hn_strip_weights(&p);
  n->packed = 1u << 1;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hn_conv_image_weights w;
  hn_conv_attr a;
  hn_strip_plan p;
  hone_reason why = {""};
  if (!describe(s, m, &a, &p, &why)) return hn_not_described(s, &why, error);
  uint16_t *to = blob;
  const hone_status status = hn_conv_image_weights_open(s, &a, &w, error);
  if (status != HONE_OK) return status;
  for (int64_t b = 0; b < p.blocks; b++)
    for (int64_t step = 0; step < p.steps; step++)
      for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 8; i++, to++) {
          const hn_strip_weight at = hn_strip_weight_of(&p, b, step, thread, i * 2);
          *to = hn_conv_image_weight(&w, at.n, at.tap / a.kernel[2], at.tap % a.kernel[2], at.c);
        }
  hn_conv_image_weights_close(&w);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_step *s = r->step;
  hn_conv_attr a;
  hn_strip_plan p;
  hone_reason why = {""};
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(r)), &a, &p, &why))
    return hn_not_described(s, &why, error);
  const int staged = hn_cuda_epilogue_staged(s);
  const char *type = hn_cuda_type(s->input[0].desc.dtype);
  hn_conv_strip_args g;
  memset(&g, 0, sizeof g);
  hn_cuda_epilogue_bind(r, 2, &g.epilogue);
  hn_str text = {0};
  hn_cuda_define_type(&text, s->input[0].desc.dtype);
  hn_strip_prefix(&a, &p, &text);
  hn_wgmma_write_product(&text, "hn_wgmma_first", type, p.n, false);
  hn_wgmma_write_product(&text, "hn_wgmma_add", type, p.n, true);
  hone_status status = hn_cuda_epilogue_fragments(s, 2, staged, &text, error);
  if (!status)
    status =
        hn_strip_launch(r, &a, &p, staged >= 0 ? r->in[s->epilogue[staged].input] : NULL, &g, &text, error);
  hn_str_free(&text);
  return status;
}

HN_TACTIC(cuda, conv_strip_wgmma, "Conv", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
