#include "backends/cuda/product/product_simt.h"

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/step/functions.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

#include <math.h>

enum { K_TILE = 16, THREADS = 256 };

static size_t shared_of(const hn_simt_tile *t) {
  const size_t ring = 2u * K_TILE * (t->bm + 4 + t->bn) * 4, sums = (size_t)t->bm * (t->bn + 8) * 4;
  return ring > sums ? ring : sums;
}

static uint32_t resident(const hn_simt_tile *t) { return t->bm * t->bn > 64 * 64 ? 2 : 4; }

static bool lines(const hn_product *p) {
  return p->constant || (p->b_lines && p->b_type == HONE_DTYPE_F32 && p->chunk == 4);
}

/* mobilenetv2's first expansion, 16 to 96 channels at batch 256, takes 1.8 times as long as a copy would. */
#define SHARE_OF_DRAM 0.55

static double seconds(const hn_product *p, const hone_machine *m, const hn_simt_tile *t, uint32_t splits) {
  const hn_product_args *g = &p->args;
  const double sms = m->processors ? m->processors : 1, dram = m->dram_bytes > 0 ? m->dram_bytes : 1e12,
               peak = m->peak_flops > 0 ? m->peak_flops : 1e13;
  const uint32_t k_tiles = hn_div_up(g->k, K_TILE), mine = hn_div_up(k_tiles, splits);
  const double blocks = (double)g->tiles * splits, held = resident(t);
  /* Operands that are fetched element by element cost several times as much as the arithmetic. */
  const bool fast = p->a_chunks && p->a_type == HONE_DTYPE_F32 && lines(p);
  const double tile_s = 2.0 * t->bm * t->bn * K_TILE / (peak / sms * t->efficiency) * (fast ? 1 : 4);
  const double alone = fmax(tile_s / 2, 0.35e-6); /* a tile's latency */
  const double rounds = (double)(uint64_t)((blocks + sms - 1) / sms),
               waves = (double)(uint64_t)((blocks + sms * held - 1) / (sms * held));
  double s = fmax(rounds * mine * tile_s, waves * mine * alone) + 1.2e-6 * waves;
  if (splits > 1) s += 0.6e-6 + (m->arch >= 90 ? 0 : 2e-6);
  return fmax(s, p->bytes / (SHARE_OF_DRAM * dram)) + m->launch_s;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_simt_tile *t, hn_product *p,
                     hone_reason *why) {
  if (!hn_product_of(s, p, why)) return false;
  if (shared_of(t) + HN_PRODUCT_OWN_SHARED > m->shared_bytes)
    return hn_refuse(why, "%zu bytes of shared memory", shared_of(t));
  hn_product_args *g = &p->args;
  uint64_t tiles = 1;
  for (uint32_t i = 0; i < g->n_batch; i++) tiles *= g->batch[i];
  g->tiles_m = hn_div_up(g->m, t->bm), g->tiles_n = hn_div_up(g->n, t->bn);
  tiles *= (uint64_t)g->tiles_m * g->tiles_n;
  if (tiles * HN_PRODUCT_SPLITS >= 0x7fffffff) return hn_refuse(why, "more than 2^31 blocks");
  g->tiles = (uint32_t)tiles;
  const uint32_t k_tiles = hn_div_up(g->k, K_TILE);
  g->splits = 1;
  double least = seconds(p, m, t, 1);
  for (uint32_t n = 2; n <= HN_PRODUCT_SPLITS && n * 2 <= k_tiles; n *= 2) {
    double x = seconds(p, m, t, n);
    if (x < least * 0.97) g->splits = n, least = x;
  }
  g->split_tiles = hn_div_up(k_tiles, g->splits);
  return true;
}

bool hn_product_simt_accepts(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                             hone_reason *why) {
  hn_product p;
  return describe(s, m, t, &p, why);
}

double hn_product_simt_cost(const hone_step *s, const hone_machine *m, const hn_simt_tile *t) {
  hn_product p;
  return describe(s, m, t, &p, NULL) ? seconds(&p, m, t, p.args.splits) : HN_REFUSED_SECONDS;
}

hone_status hn_product_simt_need(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                                 hone_tactic_need *need, hone_error *error) {
  hn_product p;
  hone_reason why;
  if (!describe(s, m, t, &p, &why)) return hn_not_described(s, &why, error);
  if (p.constant) {
    need->blob_bytes = hn_product_pack_layout(&p, true) * 4;
    need->packed = need->bytewise = 1u << 1;
  }
  need->workspace_bytes = hn_product_workspace(&p, m, t->bm, t->bn);
  return HONE_OK;
}

hone_status hn_product_simt_prepack(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                                    void *blob, hone_error *error) {
  (void)m, (void)t;
  hn_product p;
  hone_reason why;
  if (!hn_product_of(s, &p, &why)) return hn_not_described(s, &why, error);
  if (p.constant) hn_product_pack(s, &p, true, HN_PRODUCT_F32, blob);
  return HONE_OK;
}

size_t hn_product_simt_shared(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                              uint64_t *key) {
  (void)m, (void)t;
  hn_product p;
  if (!hn_product_of(s, &p, NULL) || !p.constant) return 0;
  return hn_product_shared(&p, true, HN_PRODUCT_F32, key);
}

hone_status hn_product_simt_run(const hone_step_run *run, const hn_simt_tile *t, hone_error *error) {
  const hone_machine *m = hn_cuda_machine(hn_cuda_queue_of(run));
  hn_product p;
  hone_reason why;
  if (!describe(run->step, m, t, &p, &why)) return hn_not_described(run->step, &why, error);
  const bool a_chunks = p.a_chunks && p.a_type == HONE_DTYPE_F32 && hn_product_aligned(run->in[0]),
             b_lines = p.constant || (lines(&p) && hn_product_aligned(run->in[1]));
  if (p.constant) hn_product_pack_layout(&p, true);
  hn_str text = {0};
  hn_str_printf(
      &text, "#define HN_A %s\n#define HN_B %s\n#define BM %u\n#define BN %u\n#define BLOCKS %u\n%s%s",
      hn_cuda_type(p.a_type), p.constant ? "f32" : hn_cuda_type(p.b_type), t->bm, t->bn, resident(t),
      a_chunks ? "#define HN_A_CHUNKS 1\n" : "", b_lines ? "#define HN_B_LINES 1\n" : "");
  hn_cuda_shape shape = {.threads = THREADS, .shared = (uint32_t)shared_of(t)};
  return hn_product_launch(run, &p, &text, "product_simt", &shape, error);
}
