#include <stdbool.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/strassen/strassen.h"
#include "backends/cpu/product/strassen_driver.h"
#include "base/integers.h"

enum {
  LINE = HN_STRASSEN_LINE,
  LEAST_HALF = 24, /* rows, and columns in panels, that a half must have */
  LEAST_K = 128    /* of a half */
};

/* Cycles, fitted on Zen 4: for a vector of A whose seven factors are made, of which more than the arithmetic
 * is that they leave L1; for a tile and each of its vectors; for a vector of C that is written. Five of seven
 * products add two panels in their loops, which takes turns with the multiply-adds where sums have no units
 * of their own. */
static const double row_cycles = 8, tile_cycles = 220, sum_cycles = 6, write_cycles = 3, panel_cycles = 0.5;

/* Cycles of one task of m x n on the busiest thread, all told: rounds of tasks of so many blocks and pairs.
 */
static double cycles_of(const hn_strassen *p, const hn_gemm_ops *o, int64_t m_tasks, int64_t n_tasks,
                        uint32_t threads) {
  const int64_t half = hn_div_up(p->meet, 2), tiles = hn_div_up(half, o->mr), all = hn_strassen_blocks(p);
  const double vectors = (double)o->nr / o->vw, k = (double)p->k / 2, pieces = (double)p->pieces,
               rows = (double)half;
  const double panels = hn_cpu()->adds_aside ? 0 : 5.0 / 7 * k * vectors * panel_cycles;
  const double product = rows * vectors * k / 2 + (double)tiles * (pieces * tile_cycles + panels) +
                         rows * vectors * pieces * sum_cycles;
  const double pair = HN_STRASSEN_PRODUCTS * product + 4 * rows * vectors * pieces * write_cycles;
  const double factors = 4 * rows * k / o->vw * row_cycles;
  const double blocks = (double)hn_div_up(all, m_tasks), pairs = (double)hn_div_up(p->pairs, n_tasks);
  return (double)hn_div_up(m_tasks * n_tasks, threads) * blocks * (pairs * pair + factors);
}

/* Cuts rows into blocks of at most `most`, and at least so many of them, and these and the pairs into tasks:
 * each makes the factors of its rows for itself, since what another core has written is far. False: blocks
 * would be too small. */
static bool try_tasks(hn_strassen *p, const hn_gemm_ops *o, int64_t most, int64_t m_tasks, uint32_t threads) {
  const int64_t matrices = p->m / p->apart;
  p->meet = hn_div_up(p->apart, hn_max(hn_div_up(p->apart, most), hn_div_up(m_tasks, matrices)));
  if (p->meet < 2 * LEAST_HALF) return false;
  p->m_tasks = hn_min(m_tasks, hn_strassen_blocks(p));
  p->cycles = 0;
  const int64_t want = threads == 1 ? 1 : 2 * (int64_t)threads;
  int64_t best = 1;
  for (int64_t n = 1; n <= p->pairs && n * p->m_tasks <= hn_max(want, p->m_tasks); n++) {
    const double cycles = cycles_of(p, o, p->m_tasks, n, threads);
    if (p->cycles == 0 || cycles < p->cycles * 0.999) p->cycles = cycles, best = n;
  }
  p->n_tasks = best;
  return true;
}

bool hn_strassen_plan(hn_strassen *p, uint32_t threads, size_t l1, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->pairs = p->n / 2 / o->nr;
  if (p->k % 2 || p->k / 2 < LEAST_K || p->pairs * (int64_t)o->nr < LEAST_HALF || p->apart < 2 * LEAST_HALF)
    return false;
  /* A tile's rows of a factor in most of L1, as those of the usual product; the four quarters of a pair of
   * panels in a quarter of L2. */
  const int64_t rows = (int64_t)(l1 / 8 * 7 / 4 / o->mr), panel = (int64_t)(l2 / 4 / 4 / 4 / o->nr);
  p->pieces = hn_div_up(p->k / 2, hn_max(LEAST_K, hn_min(rows, panel)));
  p->ld = (hn_div_up(hn_div_up(p->k / 2, p->pieces), LINE) | 1) * LINE;
  /* Factors of so many rows at once as stay in L2 beside the panels. */
  const int64_t floats = (int64_t)(l2 / 4 * 3 / 4),
                most = hn_max(2 * LEAST_HALF, 2 * (floats / (HN_STRASSEN_PRODUCTS * p->ld)));
  hn_strassen best = {.cycles = 0};
  for (int64_t m = 1; m <= 2 * (int64_t)threads; m++) {
    hn_strassen q = *p;
    if (try_tasks(&q, o, most, m, threads) && (best.cycles == 0 || q.cycles < best.cycles * 0.999)) best = q;
    if (threads == 1) break;
  }
  if (best.cycles == 0) return false;
  *p = best;
  p->blocks =
      hn_max(1, hn_min(hn_div_up(hn_strassen_blocks(p), p->m_tasks), floats / hn_strassen_block_floats(p)));
  p->factors = p->blocks * hn_strassen_block_floats(p);
  const int64_t flags = hn_div_up(p->blocks * hn_strassen_tiles(p, o), (int64_t)sizeof(float));
  p->thread_floats =
      hn_fill_up(p->factors, LINE) + hn_fill_up(4 * (int64_t)o->mr * o->nr, LINE) + hn_fill_up(flags, LINE);
  return true;
}

size_t hn_strassen_workspace(const hn_strassen *p, uint32_t threads) {
  return (size_t)(p->thread_floats * threads);
}

double hn_strassen_products(const hn_strassen *p) {
  return 1 - 2.0 * (double)p->pairs * (double)hn_gemm_find(p->isa)->nr / (double)p->n / 8;
}

double hn_strassen_cycles(const hn_strassen *p, uint32_t threads) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  const double products = 7 * (double)p->m / 2 * (double)p->pairs * o->nr / o->vw * (double)p->k / 2 / 2;
  return p->cycles - products / threads;
}
