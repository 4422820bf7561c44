#include "backends/cuda/product/product_mma.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

#include <math.h>

enum { STAGE_CHUNKS = 8 };

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

static uint32_t threads_of(const hn_mma_tile *t) { return 32 * t->warps_m * t->warps_n * t->warps_k; }

/* Tiles of K that are on their way, as many as a block's shared memory holds; two where nothing is copied
 * behind the computation (before architecture 80), so that more blocks have room. */
static uint32_t stages_of(const hn_mma_tile *t, const hone_machine *m) {
  if (m->arch < 80) return 2;
  const size_t room = m->shared_bytes > HN_PRODUCT_OWN_SHARED ? m->shared_bytes - HN_PRODUCT_OWN_SHARED : 0;
  const uint32_t fit = (uint32_t)(room / ((t->bm + t->bn) * 128));
  return fit > t->stages ? t->stages : fit > 2 ? fit : 2;
}

static size_t shared_of(const hn_mma_tile *t, const hone_machine *m) {
  return max_size((size_t)stages_of(t, m) * (t->bm + t->bn) * 128,
                  (size_t)t->warps_k * t->bm * (t->bn + 8) * 4);
}

/* Blocks that one multiprocessor holds: its shared memory is a block's limit and a little. */
static uint32_t resident(const hn_mma_tile *t, const hone_machine *m) {
  uint32_t by_shared = (uint32_t)((m->shared_bytes + 1024) / (shared_of(t, m) + 1024)),
           by_registers = 512 / threads_of(t), n = by_shared < by_registers ? by_shared : by_registers;
  return n ? n : 1;
}

/* f32 operands that may not be rounded: three products of tf32 parts. */
static bool split3(const hone_step *s, const hn_product *p) {
  return p->a_type == HONE_DTYPE_F32 && s->math < HONE_MATH_TF32;
}

/* Of codes there are twice as many in an instruction as of 16-bit elements. */
static double rate(const hn_product *p, const hone_machine *m) {
  double r = p->a_type == HONE_DTYPE_F32 ? m->tf32_flops : m->half_flops * (p->codes ? 2 : 1);
  return r > 0 ? r : 1e14;
}
static double whole(double x) { return (double)(uint64_t)(x + 0.999999); }
static bool clusters(const hone_machine *m) { return m->arch >= 90; }

/* A multiprocessor of an H200: bytes a second that warps draw from shared memory and tiles from L2, the
 * fraction of the tensor cores' peak that mma.sync reaches; seconds of a launch; of a wave of blocks and of
 * eight sums that a thread stores; of a tile of K: its barrier, a sum, a chunk to load, the walk over taps;
 * and of parts of K that meet: one block a multiprocessor at a time, with what 4096 sums add, eight parts,
 * and clusters that wait for room, from half of the multiprocessors on. */
#define COST_CLOCK 1.98e9
#define COST_SHARED 1.65e11
#define COST_L2 6.5e10
#define COST_PRODUCTS 0.39
#define COST_BASE 0.79e-6
#define COST_WAVE 0.66e-6
#define COST_ITEM 0.256e-6
#define COST_STEP 0.008e-6
#define COST_FRAGMENT 2.7e-9
#define COST_LOAD 19e-9
#define COST_TAP 0.12e-6
#define COST_MEET 1.0e-6
#define COST_MEET_SUMS 0.75e-6
#define COST_MEET_EIGHT 1.21
#define COST_CROWDED 0.56
/* What an epilogue's tensor costs, which nobody asks for before the sums are there. */
#define COST_ADDED 0.55e-6
/* Products that three parts of an f32 product count as. */
#define COST_PARTS 4.9

/* The same of f32, by 710 measurements of layers of four networks: what tiles draw from L2, clusters that
 * wait. And blocks that would have a multiprocessor each share some, as they begin where the launch before
 * has left room first: of 56 blocks each takes 0.34 us a tile of K, of 112 blocks 0.53. */
#define COST_L2_PARTS 4.2e10
#define COST_CROWDED_PARTS 0.4
static double sharing(double blocks) { return 1 + 0.8 * fmin(fmax((blocks - 0.35) / 0.65, 0), 1); }

/* Seconds, by terms that were fitted to measured layers (docs/log/perf-log-gpu.md): a multiprocessor works
 * through its blocks' tiles of K as fast as tensor cores, shared memory and L2 let it, but no block is faster
 * than its instructions: few and small blocks wait for them. */
double hn_mma_seconds(const hn_product *p, const hone_machine *m, const hn_mma_tile *t, bool three) {
  const hn_product_args *g = &p->args;
  const double sms = m->processors ? m->processors : 1, dram = m->dram_bytes > 0 ? m->dram_bytes : 1e12;
  /* Against the measured machine: cycles, and half as much shared memory in one before architecture 80. */
  const double scale = hn_cuda_clock(m) / COST_CLOCK, shared_scale = scale * (m->arch < 80 ? 0.5 : 1);
  const double blocks = (double)g->tiles * g->splits, held = resident(t, m), mine = g->split_tiles;
  const double sums = (double)t->bm * t->bn, lines = (double)(t->bm + t->bn) * 128;
  const double warp_lines = (double)(t->bm * t->warps_n + t->bn * t->warps_m) * 128;
  const double products = 2 * sums * STAGE_CHUNKS * p->chunk * (three ? COST_PARTS : 1);
  double busy = products / (COST_PRODUCTS * rate(p, m) / sms);
  busy = fmax(busy, (warp_lines + lines) / (COST_SHARED * shared_scale));
  busy = fmax(busy, lines / ((three ? COST_L2_PARTS : COST_L2) * scale));
  const double threads = threads_of(t);
  const double alone = (COST_STEP + COST_FRAGMENT * sums / threads +
                        COST_LOAD * (t->bm + t->bn) * 8 / threads + (p->one_tap ? 0 : COST_TAP)) *
                       (three ? 2 : 1) / scale;
  const double rounds = whole(blocks / sms), waves = whole(blocks / (sms * held));
  const double items = fmax(1, sums / 8 / threads / g->splits);
  const double share = blocks / sms, shared = three && share <= 1 ? sharing(share) : 1;
  double s = COST_BASE + waves * (COST_WAVE + items * COST_ITEM) +
             shared * fmax(rounds * mine * busy, waves * mine * alone);
  if (g->splits > 1) {
    const double crowded = fmin(fmax((share - 0.5) / 0.25, 0), 1);
    const double meet = COST_MEET * (g->splits > 4 ? COST_MEET_EIGHT : 1) + COST_MEET_SUMS * sums / 4096;
    s += meet * fmax(1 + (three ? COST_CROWDED_PARTS : COST_CROWDED) * crowded, share) +
         (clusters(m) ? 0 : 3e-6);
  }
  return fmax(s, p->bytes / (0.8 * dram) + COST_BASE) - 1.3e-6 + m->launch_s;
}

bool hn_mma_fits(const hone_step *s, hn_product *p, const hone_machine *m, const hn_mma_tile *t,
                 hone_reason *why) {
  if (p->conv && !p->a_chunks) return hn_refuse(why, "a group's channels are no multiple of %u", p->chunk);
  if (p->a_chunks && hone_desc_bytes(&s->input[0].desc) / 16 >= 0x7fffffff)
    return hn_refuse(why, "the input has more than 32 GiB");
  if (shared_of(t, m) + HN_PRODUCT_OWN_SHARED > m->shared_bytes)
    return hn_refuse(why, "%zu bytes of shared memory", shared_of(t, m));
  hn_product_args *g = &p->args;
  uint64_t tiles = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) tiles *= g->batch[i];
  g->tiles_m = hn_div_up(g->m, t->bm), g->tiles_n = hn_div_up(g->n, t->bn);
  tiles *= (uint64_t)g->tiles_m * g->tiles_n;
  if (tiles * HN_PRODUCT_SPLITS >= 0x7fffffff) return hn_refuse(why, "more than 2^31 blocks");
  g->tiles = (uint32_t)tiles;
  const uint32_t k_tiles = hn_div_up(g->k_chunks, STAGE_CHUNKS);
  if (t->splits > k_tiles) return hn_refuse(why, "K is %u: too short for %u parts", g->k, t->splits);
  g->splits = t->splits, g->split_tiles = hn_div_up(k_tiles, t->splits);
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, hn_product *p,
                     hone_reason *why) {
  if (!hn_product_of(s, p, why) || !hn_cuda_tensor_cores(m, p->a_type, why)) return false;
  if (p->a_type == HONE_DTYPE_F32 && s->math < HONE_MATH_F32)
    return hn_refuse(why, "the plan allows f32 products alone");
  if (p->conv && !p->constant) return hn_refuse(why, "weights are not constant");
  if (!p->constant && p->b_type != p->a_type)
    return hn_refuse(why, "operands are %s and %s", hone_dtype_name(p->a_type), hone_dtype_name(p->b_type));
  return hn_mma_fits(s, p, m, t, why);
}

bool hn_product_mma_accepts(const hone_step *s, const hone_machine *m, const hn_mma_tile *t,
                            hone_reason *why) {
  hn_product p;
  return describe(s, m, t, &p, why);
}

double hn_product_mma_cost(const hone_step *s, const hone_machine *m, const hn_mma_tile *t) {
  hn_product p;
  if (!describe(s, m, t, &p, NULL)) return HN_REFUSED_SECONDS;
  const bool added = t->splits == 1 && hn_cuda_epilogue_tensors(s) > 0;
  return hn_mma_seconds(&p, m, t, split3(s, &p)) + (added ? COST_ADDED : 0);
}

hone_status hn_product_mma_need(const hone_step *s, const hone_machine *m, const hn_mma_tile *t,
                                hone_tactic_need *need, hone_error *error) {
  hn_product p;
  hone_reason why;
  if (!describe(s, m, t, &p, &why)) return hn_not_described(s, &why, error);
  if (p.constant) {
    need->blob_bytes = hn_product_pack_layout(&p, false) * hone_dtype_size(p.a_type);
    need->packed = need->bytewise = 1u << 1;
  }
  need->workspace_bytes = hn_product_workspace(&p, m, t->bm, t->bn);
  return HONE_OK;
}

static hn_product_type packed_as(const hone_step *s, const hn_product *p) {
  return split3(s, p)                  ? HN_PRODUCT_F32
         : p->a_type == HONE_DTYPE_F32 ? HN_PRODUCT_TF32
         : p->a_type == HONE_DTYPE_F16 ? HN_PRODUCT_F16
                                       : HN_PRODUCT_BF16;
}

hone_status hn_product_mma_prepack(const hone_step *s, const hone_machine *m, const hn_mma_tile *t,
                                   void *blob, hone_error *error) {
  (void)m, (void)t;
  hn_product p;
  hone_reason why;
  if (!hn_product_of(s, &p, &why)) return hn_not_described(s, &why, error);
  if (p.constant) hn_product_pack(s, &p, false, packed_as(s, &p), blob);
  return HONE_OK;
}

size_t hn_product_mma_shared(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, uint64_t *key) {
  (void)m, (void)t;
  hn_product p;
  if (!hn_product_of(s, &p, NULL) || !p.constant) return 0;
  return hn_product_shared(&p, false, packed_as(s, &p), key);
}

void hn_product_mma_work(const hone_step *s, const hone_machine *m, const hn_mma_tile *t, hone_work *work) {
  (void)m, (void)t;
  hn_cuda_tf32_work(s, work);
}

hone_status hn_mma_launch(const hone_step_run *run, hn_product *p, const hn_mma_tile *t, bool three,
                          const char *more, hone_error *error) {
  const hone_step *s = run->step;
  const hone_machine *m = hn_cuda_machine(hn_cuda_queue_of(run));
  if (p->constant) hn_product_pack_layout(p, false);
  const bool b_there = p->constant || hn_product_aligned(run->in[1]),
             a_chunks = p->a_chunks && hn_product_aligned(run->in[0]), b_chunks = p->b_chunks && b_there,
             b_lines = !p->constant && !b_chunks && p->b_lines && b_there;
  if (p->conv && !a_chunks)
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: the input lies at an odd address", s->anchor);
  hn_str text = {0};
  hn_str_printf(&text,
                "#define HN_T %s\n#define BM %u\n#define BN %u\n#define WARPS_M %u\n#define WARPS_N %u\n"
                "#define WARPS_K %u\n#define STAGES %u\n#define BLOCKS %u\n%s%s%s%s%s",
                hone_dtype_name(p->a_type), t->bm, t->bn, t->warps_m, t->warps_n, t->warps_k, stages_of(t, m),
                resident(t, m), p->constant ? "#define HN_B_PACKED 1\n" : "",
                a_chunks ? "" : "#define HN_A_ELEMENTS 1\n",
                b_lines    ? "#define HN_B_LINES 1\n"
                : b_chunks ? ""
                           : "#define HN_B_ELEMENTS 1\n",
                three                                        ? "#define HN_SPLIT3 1\n"
                : p->constant && p->a_type == HONE_DTYPE_F32 ? "#define HN_B_ROUNDED 1\n"
                                                             : "",
                more);
  hn_cuda_shape shape = {.threads = threads_of(t), .shared = (uint32_t)shared_of(t, m)};
  return hn_product_launch(run, p, &text, "product_mma", &shape, error);
}

hone_status hn_product_mma_run(const hone_step_run *run, const hn_mma_tile *t, hone_error *error) {
  const hone_step *s = run->step;
  hn_product p;
  hone_reason why;
  if (!describe(s, hn_cuda_machine(hn_cuda_queue_of(run)), t, &p, &why))
    return hn_not_described(s, &why, error);
  return hn_mma_launch(run, &p, t, split3(s, &p), "", error);
}
