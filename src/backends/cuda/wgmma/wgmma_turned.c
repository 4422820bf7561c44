#include "backends/cuda/wgmma/wgmma_turned.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/wgmma/tensor_map.h"
#include "backends/cuda/wgmma/wgmma_pixels.h"
#include "backends/cuda/wgmma/wgmma_problem.h"
#include "base/error.h"
#include "base/integers.h"

enum {
  GROUPS = 2,
  PANEL = 64,           /* channels */
  MOST_REGISTERS = 176, /* of a thread's 232: its sums */
  MOST_PIXELS = 256,    /* of a product, and of a copy */
  LEAST_PIXELS = 32,
  MOST_STAGES = 8,
  RESERVED = 1024, /* bytes of shared memory beside the ring */
};

static uint32_t size_of(const hn_turned *p) { return (uint32_t)hone_dtype_size(p->q.p.a_type); }

/* Where blocks divide K: bytes for all sums of the pixels that a block ends, and for what is added to them
 * and the results. */
static uint32_t parts_of(const hn_turned *p) {
  const uint32_t eights = (uint32_t)hn_div_up(p->n / 8, p->splits);
  return p->splits == 1 ? 0 : eights * (p->splits * GROUPS * 128 * 16 + GROUPS * 8 * PANEL * size_of(p));
}
static uint32_t kinds_of(const hn_turned *p) { return p->bordered ? p->n * 2 * GROUPS * 2 : 0; }

/* The ring for tiles of n pixels, or false where fewer than three places fit. */
static bool ring_of(const hone_machine *m, hn_turned *p, uint32_t n) {
  p->n = n;
  const uint32_t stage = (n + p->channels) * 128, parts = parts_of(p) + kinds_of(p),
                 room = (uint32_t)m->shared_bytes - RESERVED;
  if (parts >= room) return false;
  p->panels = 2 * n * PANEL * size_of(p) <= stage ? 2 : 1;
  p->stages = (room - parts) / (stage + 24) < MOST_STAGES ? (room - parts) / (stage + 24) : MOST_STAGES;
  p->q.tiles = hn_div_up(p->q.p.args.m, n) * p->n_tiles;
  return p->stages >= 3;
}

/* Blocks that divide K. l2: bytes a second of a multiprocessor. Each draws its blocks of K as fast as it gets
 * them, little slower when all do; the copy engine takes its time for pixels of taps; sums cross at 22 GB/s.
 * Clusters of four and eight leave some multiprocessors out, from half of all on they wait for room, and
 * those that find none begin when others have ended. Fitted to 108 measurements of two networks on one H200
 * (docs/log/perf-log-hopper.md). */
static double divided_seconds(const hn_turned *p, double sms, double l2) {
  const double held = fmax(1, floor(sms / p->splits * (p->splits > 2 ? 0.91 : 1))),
               rounds = ceil((double)p->q.tiles / held);
  const double share = fmin((double)p->q.tiles * p->splits / sms, 1),
               crowded = fmin(fmax((share - 0.5) / 0.25, 0), 1);
  const double block = ((p->n + p->channels) * HN_WGMMA_BLOCK_BYTES / (0.94 * l2) +
                        (p->q.mode == HN_WGMMA_IM2COL ? p->n * 0.3e-9 : 0)) *
                       (1 + 0.21 * share);
  const double meet = p->n * (p->channels * 4.0) / 22e9 + 0.1e-6 * log2(p->splits) + 0.6e-6 * crowded;
  return rounds * (block * hn_div_up(p->q.k_blocks, p->splits) + meet) + 0.13e-6;
}

/* As tiles of conv_wgmma.cu (wgmma.c), with constants by hand to 26 layers of YOLOv3 at 16 on one H200
 * (docs/log/perf-log-hopper.md). */
double hn_turned_seconds(const hone_machine *m, const hn_turned *p) {
  const hn_wgmma_problem *q = &p->q;
  const double sms = m->processors ? m->processors : 132, bytes = size_of(p),
               k = HN_WGMMA_BLOCK_BYTES / bytes,
               half = (m->half_flops > 0 ? m->half_flops : 1e15) * (q->p.codes ? 2 : 1) / sms,
               dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12,
               l2 = (m->cache_bytes > 0 ? 1.7 * m->cache_bytes : 14e12) / sms,
               rounds = ceil((double)q->tiles / sms);
  const double values = (double)p->n * p->channels;
  /* Codes that a table makes of codes are looked up one by one. */
  const double looked_up = !q->table           ? 1
                           : q->staged         ? 4.4
                           : p->bordered       ? 3.5
                           : p->channels > 128 ? 3.2
                                               : 2,
               added = (!q->staged          ? 1
                        : p->channels > 128 ? 1.75
                                            : 1.6) *
                       looked_up;
  const double leave = values * (added * 30e-12 + q->functions * (1.55e-12 + 4.35e-12 / GROUPS));
  const double gather = q->mode == HN_WGMMA_IM2COL ? p->n * (k / q->unit) * 3e-9 : 0;
  const double least = fmax(fmax(gather, 0.17e-6), (p->n + p->channels) * HN_WGMMA_BLOCK_BYTES / l2);
  const double product = 2 * values * k / half;
  const double time = p->splits > 1 ? divided_seconds(p, sms, l2)
                      : rounds <= 1
                          ? fmax(product / 0.77, least) * q->k_blocks + leave + 0.48e-6
                          : rounds * (fmax(product / 0.72, least) * q->k_blocks + 1.2 * leave + 0.3e-6);
  const double moved = q->p.bytes - q->unread,
               written = fmin((double)q->p.args.m * q->columns * bytes / moved, 1);
  const double memory = moved / ((0.93 - 0.205 * written) * dram);
  return cbrt(time * time * time + memory * memory * memory) + m->launch_s;
}

bool hn_turned_tiles(hn_turned *p, const hone_machine *m, const hn_wgmma_turned_config *c, hone_reason *why) {
  const uint32_t step = p->q.p.codes ? 16 : 8; /* products have no others */
  p->channels = GROUPS * c->wm * PANEL, p->splits = c->splits;
  if (p->q.mode == HN_WGMMA_GATHER) return hn_refuse(why, "pixels that the copy engine cannot bring");
  p->n_tiles = (uint32_t)hn_div_up(p->q.n16, p->channels);
  if (p->q.k_blocks < p->splits)
    return hn_refuse(why, "K is %u blocks: too short for %u parts", p->q.k_blocks, p->splits);
  /* The number of pixels with which the last round of tiles is fullest. */
  uint32_t most = MOST_REGISTERS * 2 / c->wm / step * step, best = 0;
  if (most > MOST_PIXELS) most = MOST_PIXELS;
  double least = 0;
  for (uint32_t n = most; n >= LEAST_PIXELS; n -= step) {
    if (!ring_of(m, p, n)) continue;
    const double seconds = hn_turned_seconds(m, p);
    if (!best || seconds < least) best = n, least = seconds;
  }
  if (!best || !ring_of(m, p, best)) return hn_refuse(why, "too little shared memory");
  if (hn_div_up(p->q.p.args.m, LEAST_PIXELS) * p->n_tiles >= INT32_MAX)
    return hn_refuse(why, "more than 2^31 tiles");
  if (p->splits > 1 && p->q.tiles > (int64_t)m->processors)
    return hn_refuse(why, "enough tiles without dividing K");
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c, hn_turned *p,
                     hone_reason *why) {
  memset(p, 0, sizeof *p);
  if (!hn_wgmma_read(s, m, &p->q, why)) return false;
  p->q.staged = hn_cuda_epilogue_staged(s) >= 0;
  if (p->q.p.out_type != p->q.p.a_type) return hn_refuse(why, "results of another type");
  if (hn_cuda_epilogue_tensors(s) > p->q.staged)
    return hn_refuse(why, "its epilogue reads tensors that do not come as the output leaves");
  p->q.unread = hn_wgmma_unread(s, &p->q), p->q.functions = hn_cuda_epilogue_instructions(s);
  return hn_turned_tiles(p, m, c, why);
}

bool hn_wgmma_turned_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                             hone_reason *why) {
  hn_turned p;
  return describe(s, m, c, &p, why);
}

double hn_wgmma_turned_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c) {
  hn_turned p;
  return describe(s, m, c, &p, NULL) ? hn_turned_seconds(m, &p) : HN_REFUSED_SECONDS;
}

size_t hn_turned_weights(const hn_turned *p) {
  return (size_t)p->q.k_blocks * p->q.n16 * HN_WGMMA_BLOCK_BYTES;
}

hone_status hn_wgmma_turned_need(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                                 hone_tactic_need *need, hone_error *error) {
  hn_turned p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = hn_turned_weights(&p);
  need->packed = need->bytewise = 1u << 1;
  return HONE_OK;
}

hone_status hn_wgmma_turned_prepack(const hone_step *s, const hone_machine *m,
                                    const hn_wgmma_turned_config *c, void *blob, hone_error *error) {
  hn_turned p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  hn_wgmma_pack(s, &p.q, p.q.n16 / 8, blob);
  return HONE_OK;
}

size_t hn_wgmma_turned_shared(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                              uint64_t *key) {
  hn_turned p;
  return describe(s, m, c, &p, NULL) ? hn_wgmma_shared_weights(&p.q, key) : 0;
}

void hn_turned_prefix(const hn_turned *p, const hn_wgmma_turned_config *c, hn_str *t) {
  const hone_dtype type = p->q.p.a_type;
  hn_str_printf(t, "#define HN_T %s\n", hone_dtype_name(type));
  if (p->q.p.codes) hn_str_printf(t, "#define HN_CODE %s\n", hone_dtype_name(p->q.p.out_type));
  hn_str_printf(
      t,
      "%s#define HN_WM %u\n#define HN_N %u\n#define HN_STAGES %u\n"
      "#define HN_PANELS %u\n#define HN_A %d\n#define HN_UNIT %u\n#define HN_STAGED %d\n#define HN_SPLITS "
      "%u\n"
      "#include \"prelude.cuh\"\n",
      p->q.p.codes ? "" : "#define HN_FAST_MATH 1\n", c->wm, p->n, p->stages, p->panels, (int)p->q.mode,
      p->q.unit, p->q.staged, p->splits);
  if (p->q.p.codes)
    hn_wgmma_write_codes(t, "hn_wgmma_both", type == HONE_DTYPE_I8, p->n);
  else
    hn_wgmma_write_shared(t, "hn_wgmma_both", hone_dtype_name(type), p->n);
}

static hone_status maps_of(const hone_step_run *run, const hn_turned *p, const void *added,
                           hn_conv_wgmma_args *args, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hn_product_args *g = &p->q.p.args;
  const hone_dtype type = p->q.p.out_type;
  const uint32_t leaves = p->splits > 1 ? 8 : p->n; /* pixels at once */
  hone_status st = hn_wgmma_map_a(queue, &p->q, run->in[0], p->n, &args->a, error);
  if (!st)
    st = hn_cuda_map_matrix(queue, &args->out, type, run->out[0], p->q.columns, g->m, g->out_pitch, PANEL,
                            leaves, error);
  if (!st && p->q.staged)
    st = hn_cuda_map_matrix(queue, &args->staged, type, added, p->q.columns, g->m, g->out_pitch, PANEL,
                            leaves, error);
  return st;
}

hone_status hn_turned_launch(const hone_step_run *run, const hn_turned *p, const void *added,
                             hn_conv_wgmma_args *args, const hn_str *text, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]) ||
      (p->q.staged && !hn_product_aligned(added)))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", run->step->anchor);
  if (text->failed) return hn_fail_memory(error, text->cap, "device text");
  hn_wgmma_args(&p->q, run->in[0], args);
  args->weights = run->blob, args->y = run->out[0], args->n_tiles = (i32)p->n_tiles;
  const hone_status st = maps_of(run, p, added, args, error);
  const hn_cuda_kernel kernel = {"conv_turned", text->ptr, "conv_turned"};
  const uint32_t persistent = (uint32_t)(p->q.tiles < m->processors ? p->q.tiles : m->processors);
  const hn_cuda_shape shape = {.grid = {p->splits > 1 ? (uint32_t)p->q.tiles * p->splits : persistent, 1, 1},
                               .threads = 128 * (1 + GROUPS),
                               .shared =
                                   p->stages * ((p->n + p->channels) * 128 + 24) + parts_of(p) + kinds_of(p),
                               .cluster = p->splits > 1 ? p->splits : 0,
                               .overlap = true};
  return st ? st : hn_cuda_launch(queue, &kernel, &shape, args, sizeof *args, error);
}

hone_status hn_wgmma_turned_run(const hone_step_run *run, const hn_wgmma_turned_config *c,
                                hone_error *error) {
  const hone_step *s = run->step;
  const hone_machine *m = hn_cuda_machine(hn_cuda_queue_of(run));
  hn_turned p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  const int staged = hn_cuda_epilogue_staged(s);
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  hn_cuda_epilogue_bind(run, p.q.p.bias, &args.epilogue);
  hn_str text = {0};
  hn_turned_prefix(&p, c, &text);
  hone_status st = hn_cuda_epilogue_fragments(s, p.q.p.bias, staged, &text, error);
  if (!st)
    st = hn_turned_launch(run, &p, staged >= 0 ? run->in[s->epilogue[staged].input] : NULL, &args, &text,
                          error);
  hn_str_free(&text);
  return st;
}
