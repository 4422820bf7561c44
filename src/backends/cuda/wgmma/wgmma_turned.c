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
  BLOCK = 64,           /* of K */
  PANEL = 64,           /* channels */
  MOST_REGISTERS = 176, /* of a thread's 232: its sums */
  MOST_PIXELS = 256,    /* of a product, and of a copy */
  LEAST_PIXELS = 32,
  MOST_STAGES = 8,
  RESERVED = 1024, /* bytes of shared memory beside the ring */
};

/* How a step is run; names as in conv_turned.cu. */
typedef struct plan {
  hn_wgmma_problem q;
  uint32_t channels, n, stages, panels, n_tiles, splits;
  int staged; /* entry of the epilogue that comes through shared memory: -1 for none */
} plan;

/* Where blocks divide K: bytes for all sums of the pixels that a block ends, and for what is added to them
 * and the results. */
static uint32_t parts_of(const plan *p) {
  const uint32_t eights = (uint32_t)hn_div_up(p->n / 8, p->splits);
  return p->splits == 1 ? 0 : eights * (p->splits * GROUPS * 128 * 16 + GROUPS * 8 * 128);
}

/* The ring for tiles of n pixels, or false where fewer than three places fit. */
static bool ring_of(const hone_machine *m, plan *p, uint32_t n) {
  p->n = n;
  const uint32_t stage = (n + p->channels) * 128, parts = parts_of(p),
                 room = (uint32_t)m->shared_bytes - RESERVED;
  if (parts >= room) return false;
  p->panels = 2 * n * 128 <= stage ? 2 : 1;
  p->stages = (room - parts) / (stage + 24) < MOST_STAGES ? (room - parts) / (stage + 24) : MOST_STAGES;
  p->q.tiles = hn_div_up(p->q.p.args.m, n) * p->n_tiles;
  return p->stages >= 3;
}

/* Blocks that divide K. l2: bytes a second of a multiprocessor. Each draws its blocks of K as fast as it gets
 * them, little slower when all do; the copy engine takes its time for pixels of taps; sums cross at 22 GB/s.
 * Clusters of four and eight leave some multiprocessors out, from half of all on they wait for room, and
 * those that find none begin when others have ended. Fitted to 108 measurements of two networks on one H200
 * (docs/log/perf-log-hopper.md). */
static double divided_seconds(const plan *p, double sms, double l2) {
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
static double seconds_of(const hone_machine *m, const plan *p) {
  const hn_wgmma_problem *q = &p->q;
  const double sms = m->processors ? m->processors : 132,
               half = (m->half_flops > 0 ? m->half_flops : 1e15) / sms,
               dram = m->dram_bytes > 0 ? m->dram_bytes : 4e12,
               l2 = (m->cache_bytes > 0 ? 1.7 * m->cache_bytes : 14e12) / sms,
               rounds = ceil((double)q->tiles / sms);
  const double values = (double)p->n * p->channels, added = p->staged >= 0 ? 1.6 : 1;
  const double leave = values * (added * 30e-12 + q->functions * (1.55e-12 + 4.35e-12 / GROUPS));
  const double gather = q->mode == HN_WGMMA_IM2COL ? p->n * ((double)BLOCK / q->unit) * 3e-9 : 0;
  const double least = fmax(fmax(gather, 0.17e-6), (p->n + p->channels) * HN_WGMMA_BLOCK_BYTES / l2);
  const double product = 2 * values * BLOCK / half;
  const double time = p->splits > 1 ? divided_seconds(p, sms, l2)
                      : rounds <= 1
                          ? fmax(product / 0.77, least) * q->k_blocks + leave + 0.48e-6
                          : rounds * (fmax(product / 0.72, least) * q->k_blocks + 1.2 * leave + 0.3e-6);
  const double moved = q->p.bytes - q->unread,
               written = fmin((double)q->p.args.m * q->columns * 2 / moved, 1);
  const double memory = moved / ((0.93 - 0.205 * written) * dram);
  return cbrt(time * time * time + memory * memory * memory) + m->launch_s;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c, plan *p,
                     hone_reason *why) {
  *p = (plan){.channels = GROUPS * c->wm * PANEL, .splits = c->splits, .staged = hn_cuda_epilogue_staged(s)};
  if (!hn_wgmma_read(s, m, &p->q, why)) return false;
  if (p->q.p.out_type != p->q.p.a_type) return hn_refuse(why, "results of another type");
  if (p->q.mode == HN_WGMMA_GATHER) return hn_refuse(why, "pixels that the copy engine cannot bring");
  if (hn_cuda_epilogue_tensors(s) > (p->staged >= 0))
    return hn_refuse(why, "its epilogue reads tensors that do not come as the output leaves");
  p->q.unread = hn_wgmma_unread(s, &p->q), p->q.functions = hn_cuda_epilogue_instructions(s);
  p->n_tiles = (uint32_t)hn_div_up(p->q.n16, p->channels);
  if (p->q.k_blocks < p->splits)
    return hn_refuse(why, "K is %u blocks: too short for %u parts", p->q.k_blocks, p->splits);
  /* The number of pixels with which the last round of tiles is fullest. */
  uint32_t most = MOST_REGISTERS * 2 / c->wm / 8 * 8, best = 0;
  if (most > MOST_PIXELS) most = MOST_PIXELS;
  double least = 0;
  for (uint32_t n = most; n >= LEAST_PIXELS; n -= 8) {
    if (!ring_of(m, p, n)) continue;
    const double seconds = seconds_of(m, p);
    if (!best || seconds < least) best = n, least = seconds;
  }
  if (!best || !ring_of(m, p, best)) return hn_refuse(why, "too little shared memory");
  if (hn_div_up(p->q.p.args.m, LEAST_PIXELS) * p->n_tiles >= INT32_MAX)
    return hn_refuse(why, "more than 2^31 tiles");
  if (p->splits > 1 && p->q.tiles > (int64_t)m->processors)
    return hn_refuse(why, "enough tiles without dividing K");
  return true;
}

bool hn_wgmma_turned_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                             hone_reason *why) {
  plan p;
  return describe(s, m, c, &p, why);
}

double hn_wgmma_turned_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c) {
  plan p;
  return describe(s, m, c, &p, NULL) ? seconds_of(m, &p) : HN_REFUSED_SECONDS;
}

static size_t weights_of(const plan *p) { return (size_t)p->q.k_blocks * p->q.n16 * HN_WGMMA_BLOCK_BYTES; }

hone_status hn_wgmma_turned_need(const hone_step *s, const hone_machine *m, const hn_wgmma_turned_config *c,
                                 hone_tactic_need *need, hone_error *error) {
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = weights_of(&p);
  need->packed = need->bytewise = 1u << 1;
  return HONE_OK;
}

hone_status hn_wgmma_turned_prepack(const hone_step *s, const hone_machine *m,
                                    const hn_wgmma_turned_config *c, void *blob, hone_error *error) {
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  memset(blob, 0, weights_of(&p));
  hn_wgmma_pack(s, &p.q, p.q.n16 / 8, blob);
  return HONE_OK;
}

static hone_status prefix(const hone_step *s, const plan *p, const hn_wgmma_turned_config *c, hn_str *t,
                          hone_error *error) {
  hn_str_printf(
      t,
      "#define HN_T %s\n#define HN_FAST_MATH 1\n#define HN_WM %u\n#define HN_N %u\n#define HN_STAGES %u\n"
      "#define HN_PANELS %u\n#define HN_A %d\n#define HN_UNIT %u\n#define HN_STAGED %d\n#define HN_SPLITS "
      "%u\n"
      "#include \"prelude.cuh\"\n",
      hone_dtype_name(p->q.p.a_type), c->wm, p->n, p->stages, p->panels, (int)p->q.mode, p->q.unit,
      p->staged >= 0, p->splits);
  hn_wgmma_write_shared(t, "hn_wgmma_both", hone_dtype_name(p->q.p.a_type), p->n);
  return hn_cuda_epilogue_fragments(s, p->q.p.bias, p->staged, t, error);
}

static hone_status maps_of(const hone_step_run *run, const plan *p, hn_conv_wgmma_args *args,
                           hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hn_product_args *g = &p->q.p.args;
  const uint32_t leaves = p->splits > 1 ? 8 : p->n; /* pixels at once */
  hone_status st = hn_wgmma_map_a(queue, &p->q, run->in[0], p->n, &args->a, error);
  if (!st)
    st = hn_cuda_map_matrix(queue, &args->out, p->q.p.out_type, run->out[0], p->q.columns, g->m, g->out_pitch,
                            PANEL, leaves, error);
  if (!st && p->staged >= 0)
    st = hn_cuda_map_matrix(queue, &args->staged, p->q.p.out_type,
                            run->in[run->step->epilogue[p->staged].input], p->q.columns, g->m, g->out_pitch,
                            PANEL, leaves, error);
  return st;
}

hone_status hn_wgmma_turned_run(const hone_step_run *run, const hn_wgmma_turned_config *c,
                                hone_error *error) {
  const hone_step *s = run->step;
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, c, &p, &why)) return hn_not_described(s, &why, error);
  if (!hn_product_aligned(run->in[0]) || !hn_product_aligned(run->out[0]) ||
      (p.staged >= 0 && !hn_product_aligned(run->in[s->epilogue[p.staged].input])))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  hn_conv_wgmma_args args;
  memset(&args, 0, sizeof args);
  hn_cuda_epilogue_bind(run, p.q.p.bias, &args.epilogue);
  hn_wgmma_args(&p.q, run->in[0], &args);
  args.weights = run->blob, args.y = run->out[0], args.n_tiles = (i32)p.n_tiles;
  hn_str text = {0};
  hone_status st = maps_of(run, &p, &args, error);
  if (!st) st = prefix(s, &p, c, &text, error);
  if (!st && text.failed) st = hn_fail_memory(error, text.cap, "device text");
  if (!st) {
    const hn_cuda_kernel kernel = {"conv_turned", text.ptr, "conv_turned"};
    const uint32_t persistent = (uint32_t)(p.q.tiles < m->processors ? p.q.tiles : m->processors);
    const hn_cuda_shape shape = {.grid = {p.splits > 1 ? (uint32_t)p.q.tiles * p.splits : persistent, 1, 1},
                                 .threads = 128 * (1 + GROUPS),
                                 .shared = p.stages * ((p.n + p.channels) * 128 + 24) + parts_of(&p),
                                 .cluster = p.splits > 1 ? p.splits : 0,
                                 .overlap = true};
    st = hn_cuda_launch(queue, &kernel, &shape, &args, sizeof args, error);
  }
  hn_str_free(&text);
  return st;
}
