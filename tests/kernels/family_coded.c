/* Adapter of weights that stay codes: products, widened weights and products of 8-bit numbers against codes,
 * scales and zero points that are packed here, as coded.h says how they lie. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/coded/coded.h"
#include "base/half.h"
#include "check.h"

enum { PANEL = HN_CODED_PANEL, MOST_ROWS = 17 };
enum zeros { MIDDLE, CODES, FLOATS, ZEROS };

typedef struct problem {
  hn_coded w;
  size_t n, k; /* k: of whole blocks */
  int *code;   /* [n][k], less the middle one */
  float *scale, *zero;
  float *half; /* of weights of 16 bits, in the place of codes */
} problem;

static int signed_code(ck *c, uint32_t bits) {
  return (int)(ck_random(c) & ((1u << bits) - 1)) - (1 << (bits - 1));
}

/* The panels of random codes. */
static problem make(ck *c, uint32_t bits, size_t block, size_t blocks, size_t n, enum zeros kind) {
  problem p = {.w = {.blocks = blocks, .block = block, .bits = bits}, .n = n, .k = block * blocks};
  const size_t panels = (n + PANEL - 1) / PANEL, bytes = hn_coded_panel_bytes(&p.w);
  uint8_t *to = (uint8_t *)ck_alloc(c, panels * bytes / 4, 0);
  int8_t *codes = (int8_t *)ck_alloc(c, panels * blocks * PANEL / 4, 0);
  float *floats = ck_alloc(c, panels * blocks * PANEL, 0);
  p.code = (int *)(void *)ck_alloc(c, n * p.k, 0);
  p.scale = ck_alloc(c, n * blocks, 0), p.zero = ck_alloc(c, n * blocks, 0);
  memset(to, 0, panels * bytes);
  memset(codes, 0, panels * blocks * PANEL);
  memset(floats, 0, panels * blocks * PANEL * sizeof *floats);
  ck_fill(c, p.scale, n * blocks, CK_RANDOM);
  ck_fill(c, p.zero, n * blocks, CK_RANDOM);
  for (size_t j = 0; j < n; j++)
    for (size_t b = 0; b < blocks; b++) {
      const size_t at = (j / PANEL * blocks + b) * PANEL + j % PANEL;
      if (kind == MIDDLE) p.zero[j * blocks + b] = 0;
      if (kind == CODES) p.zero[j * blocks + b] = (float)(codes[at] = (int8_t)signed_code(c, bits));
      floats[at] = p.zero[j * blocks + b];
      uint8_t *block_at = to + j / PANEL * bytes + b * hn_coded_block_bytes(&p.w);
      memcpy(block_at + j % PANEL * 4, &p.scale[j * blocks + b], 4);
      uint8_t *lane = block_at + PANEL * 4 + j % PANEL * 4;
      for (size_t i = 0; i < block; i++) {
        const int code = p.code[j * p.k + b * block + i] = signed_code(c, bits);
        if (bits == 8)
          lane[i / 4 * HN_CODED_GROUP_BYTES + i % 4] = (uint8_t)code;
        else
          lane[i / 8 * HN_CODED_GROUP_BYTES + i % 4] |= (uint8_t)((code & 15) << (i % 8 / 4 * 4));
      }
    }
  p.w.panels = to;
  if (kind == CODES) p.w.zero_codes = codes;
  if (kind == FLOATS) p.w.zero_floats = floats;
  return p;
}

/* f16 or bf16: the code of each is the number, its scale 1. */
static problem make_halves(ck *c, bool bf16, size_t depth, size_t n) {
  problem p = {.w = {.blocks = 1, .block = depth, .bits = 16, .bf16 = bf16}, .n = n, .k = depth};
  const size_t panels = (n + PANEL - 1) / PANEL, bytes = hn_coded_panel_bytes(&p.w);
  uint16_t *to = (uint16_t *)(void *)ck_alloc(c, panels * bytes / 4, 0);
  p.half = ck_alloc(c, n * depth, 0);
  p.scale = ck_alloc(c, n, 0), p.zero = ck_alloc(c, n, 0);
  memset(to, 0, panels * bytes);
  ck_fill(c, p.half, n * depth, CK_RANDOM);
  for (size_t j = 0; j < n; j++) {
    p.scale[j] = 1, p.zero[j] = 0;
    for (size_t k = 0; k < depth; k++) {
      float *x = &p.half[j * depth + k];
      const uint16_t half = bf16 ? hn_f32_to_bf16(*x) : hn_f32_to_f16(*x);
      *x = bf16 ? hn_bf16_to_f32(half) : hn_f16_to_f32(half);
      to[j / PANEL * bytes / 2 + k * PANEL + j % PANEL] = half;
    }
  }
  p.w.panels = (const uint8_t *)to;
  return p;
}

static float code_of(const problem *p, size_t at) { return p->half ? p->half[at] : (float)p->code[at]; }

/* Code and zero point apart, and the weight. */
static double weight(const problem *p, size_t j, size_t k, double *size) {
  const size_t b = j * p->w.blocks + k / p->w.block;
  const double code = (double)code_of(p, j * p->k + k), zero = (double)p->zero[b],
               scale = (double)p->scale[b];
  *size = (fabs(code) + fabs(zero)) * fabs(scale);
  return (code - zero) * scale;
}

static void check_product(ck *c, const hn_coded_ops *ops, const problem *p, enum zeros kind, size_t rows) {
  float *a = ck_alloc(c, rows * p->k, 0), *y = ck_alloc(c, rows * p->n, 0),
        *sums = ck_alloc(c, rows * p->w.blocks, 0);
  ck_fill(c, a, rows * p->k, CK_RANDOM);
  ck_case(c, "product bits=%u block=%zu blocks=%zu n=%zu zeros=%d rows=%zu", p->w.bits, p->w.block,
          p->w.blocks, p->n, (int)kind, rows);
  for (size_t r = 0; r < rows && kind != MIDDLE; r++) ops->sums(&p->w, a + r * p->k, sums + r * p->w.blocks);
  const size_t first = p->n > PANEL ? PANEL : p->n;
  ops->product(&p->w, a, kind == MIDDLE ? NULL : sums, rows, 0, first, y, (ptrdiff_t)p->n);
  if (p->n > first)
    ops->product(&p->w, a, kind == MIDDLE ? NULL : sums, rows, first, p->n, y + first, (ptrdiff_t)p->n);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < p->n; j++) {
      double sum = 0, size = 0;
      for (size_t k = 0; k < p->k; k++) {
        double of;
        sum += (double)a[r * p->k + k] * weight(p, j, k, &of);
        size += fabs((double)a[r * p->k + k]) * of;
      }
      /* what codes and zero points add is summed apart */
      ck_near(c, r * p->n + j, y[r * p->n + j], sum, (double)(p->k + 6) * CK_EPS * size + CK_TINY);
    }
}

static void check_widen(ck *c, const hn_coded_ops *ops, const problem *p, size_t k0, size_t k1) {
  const size_t panels = (p->n + PANEL - 1) / PANEL, wide = panels * PANEL, depth = k1 - k0;
  const size_t steps = (depth + 31) / 32;
  float *plain = ck_alloc(c, depth * wide, 0), *pairs = ck_alloc(c, steps * 32 * wide, 0);
  ck_case(c, "widen bits=%u block=%zu blocks=%zu n=%zu k=%zu..%zu", p->w.bits, p->w.block, p->w.blocks, p->n,
          k0, k1);
  ops->widen(&p->w, 0, wide, k0, k1, plain, wide);
  if (k0 % 32 == 0)
    for (size_t t = 0; t < panels; t++)
      ops->widen_pairs(&p->w, t * PANEL, k0, k0 + steps * 32, pairs + t * 512, panels * 512);
  for (size_t k = 0; k < depth; k++)
    for (size_t j = 0; j < p->n; j++) {
      const size_t b = j * p->w.blocks + (k0 + k) / p->w.block;
      const float v = (code_of(p, j * p->k + k0 + k) - p->zero[b]) * p->scale[b];
      ck_same(c, k * wide + j, plain[k * wide + j], v);
      if (k0 % 32 == 0)
        ck_same(c, k * wide + j,
                pairs[k / 32 * panels * 512 + j / PANEL * 512 + k % 32 / 2 * 32 + j % PANEL * 2 + k % 2], v);
    }
  for (size_t k = depth; k < steps * 32 && k0 % 32 == 0; k++) /* beyond the last block */
    if (k0 + k >= p->k) ck_same(c, k, pairs[k / 32 * panels * 512 + k % 32 / 2 * 32 + k % 2], 0.0f);
}

static void check_int8(ck *c, const hn_coded_int8_ops *ops, const problem *p, enum zeros kind, size_t rows) {
  float *a = ck_alloc(c, rows * p->k, 0), *y = ck_alloc(c, rows * p->n, 0),
        *scale = ck_alloc(c, rows * p->w.blocks, 0);
  int32_t *sum = (int32_t *)(void *)ck_alloc(c, rows * p->w.blocks, 0);
  int8_t *to = (int8_t *)ck_alloc(c, rows * p->k / 4, 0);
  ck_fill(c, a, rows * p->k, CK_RANDOM);
  ck_case(c, "int8 bits=%u block=%zu blocks=%zu n=%zu zeros=%d rows=%zu", p->w.bits, p->w.block, p->w.blocks,
          p->n, (int)kind, rows);
  for (size_t r = 0; r < rows; r++)
    ops->narrow(&p->w, a + r * p->k, to + r * p->k, scale + r * p->w.blocks, sum + r * p->w.blocks);
  for (size_t r = 0; r < rows; r++)
    for (size_t b = 0; b < p->w.blocks; b++) {
      int32_t all = 0;
      float most = 0;
      for (size_t k = b * p->w.block; k < (b + 1) * p->w.block; k++) {
        const float x = a[r * p->k + k];
        all += to[r * p->k + k];
        most = fabsf(x) > most ? fabsf(x) : most;
        /* to the nearest: half a step, and what dividing costs */
        ck_near(c, k, (float)to[r * p->k + k] * scale[r * p->w.blocks + b], (double)x,
                0.5001 * (double)scale[r * p->w.blocks + b]);
      }
      ck_same(c, b, scale[r * p->w.blocks + b], most / 127.0f);
      if (all != sum[r * p->w.blocks + b]) ck_same(c, b, (float)sum[r * p->w.blocks + b], (float)all);
    }
  hn_coded_rows of = {to, scale, sum, NULL, NULL};
  ops->product(&p->w, &of, rows, 0, p->n, y, (ptrdiff_t)p->n);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < p->n; j++) {
      double all = 0, size = 0;
      for (size_t k = 0; k < p->k; k++) {
        double of_weight;
        const double x = (double)to[r * p->k + k] * (double)scale[r * p->w.blocks + k / p->w.block];
        all += x * weight(p, j, k, &of_weight);
        size += fabs(x) * of_weight;
      }
      /* sums of a block are exact; blocks are scaled and added */
      ck_near(c, r * p->n + j, y[r * p->n + j], all, (double)(p->w.blocks + 4) * CK_EPS * size + CK_TINY);
    }
  if (p->w.blocks > 1) return;
  /* The same where rows lie apart: over what was there, over a base, over nothing. */
  hn_coded_end *end = (hn_coded_end *)(void *)ck_alloc(c, rows * sizeof *end / sizeof(float), 0);
  const size_t panels = (p->n + PANEL - 1) / PANEL, first = p->n > PANEL ? PANEL : p->n;
  float *before = ck_alloc(c, rows * p->n, 0);
  int32_t *shifted = (int32_t *)(void *)ck_alloc(c, panels * PANEL, 0);
  ck_fill(c, before, rows * p->n, CK_RANDOM);
  for (size_t j = 0; j < panels * PANEL; j++) shifted[j] = (int32_t)(ck_random(c) % 2001) - 1000;
  for (size_t r = 0; r < rows; r++) {
    end[r] = (hn_coded_end){ck_alloc(c, p->n, 0), r % 3 == 2 ? NULL : before + r * p->n, 3 - 2 * (int32_t)r};
    if (r % 3 == 0) memcpy(end[r].to, before + r * p->n, p->n * sizeof(float)), end[r].base = end[r].to;
  }
  of.end = end, of.shifted = shifted;
  ops->product(&p->w, &of, rows, 0, first, NULL, 0);
  if (p->n > first) ops->product(&p->w, &of, rows, first, p->n, NULL, 0);
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < p->n; j++) {
      const double base = r % 3 == 2 ? 0 : (double)before[r * p->n + j], sum_of = (double)y[r * p->n + j],
                   shift = (double)end[r].shift * shifted[j] * (double)scale[r] * (double)p->scale[j];
      ck_near(c, r * p->n + j, end[r].to[j], base + shift + sum_of,
              6 * CK_EPS * (fabs(base) + fabs(shift) + fabs(sum_of)) + CK_TINY);
    }
}

static void check(ck *c, const struct hn_kernel *k) {
  static const struct {
    size_t block, blocks, n;
  } of[] = {{16, 1, 1},  {16, 3, 17}, {32, 2, 33},  {32, 5, 64},
            {64, 3, 70}, {8, 7, 15},  {256, 1, 48}, {40, 2, 130}};
  const bool int8 = strcmp(k->role, "int8") == 0;
  for (uint32_t bits = 4; bits <= 8; bits *= 2)
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
      for (int zeros = 0; zeros < (int8 ? FLOATS : ZEROS); zeros++) {
        const problem p = make(c, bits, of[i].block, of[i].blocks, of[i].n, (enum zeros)zeros);
        for (size_t rows = 1; rows <= MOST_ROWS; rows += 1 + rows / 3)
          if (int8)
            check_int8(c, k->ops, &p, (enum zeros)zeros, rows);
          else
            check_product(c, k->ops, &p, (enum zeros)zeros, rows);
        if (!int8) {
          check_widen(c, k->ops, &p, 0, p.k);
          check_widen(c, k->ops, &p, 8, p.k);
          if (p.k > 32) check_widen(c, k->ops, &p, 32, p.k);
        }
        ck_release_all(c);
      }
  for (size_t i = 0; !int8 && i < sizeof of / sizeof *of; i++)
    for (int bf16 = 0; bf16 < 2; bf16++) {
      const problem p = make_halves(c, bf16, of[i].block * of[i].blocks, of[i].n);
      for (size_t rows = 1; rows <= MOST_ROWS; rows += 1 + rows / 3)
        check_product(c, k->ops, &p, MIDDLE, rows);
      check_widen(c, k->ops, &p, 0, p.k);
      if (p.k > 8) check_widen(c, k->ops, &p, 8, p.k);
      if (p.k > 32) check_widen(c, k->ops, &p, 32, p.k);
      ck_release_all(c);
    }
}

struct job {
  const struct hn_kernel *kernel;
  const problem *p;
  const float *a;
  hn_coded_rows rows8;
  float *y;
  size_t rows;
};
static void run_job(void *arg) {
  struct job *j = arg;
  if (strcmp(j->kernel->role, "int8") == 0)
    ((const hn_coded_int8_ops *)j->kernel->ops)
        ->product(&j->p->w, &j->rows8, j->rows, 0, j->p->n, j->y, (ptrdiff_t)j->p->n);
  else
    ((const hn_coded_ops *)j->kernel->ops)
        ->product(&j->p->w, j->a, NULL, j->rows, 0, j->p->n, j->y, (ptrdiff_t)j->p->n);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("coded", "f32", HN_ISA_SCALAR);
  const uint32_t most = strcmp(k->role, "int8") == 0 ? 8 : 16;
  for (uint32_t bits = 4; bits <= most; bits *= 2)
    for (size_t rows = 1; rows <= 8; rows *= 2) {
      const problem p = bits == 16 ? make_halves(c, false, 2048, 256) : make(c, bits, 32, 64, 256, MIDDLE);
      float *a = ck_alloc(c, rows * p.k, 0);
      struct job j = {.kernel = k, .p = &p, .a = a, .y = ck_alloc(c, rows * p.n, 0), .rows = rows};
      ck_fill(c, a, rows * p.k, CK_RANDOM);
      j.rows8 =
          (hn_coded_rows){(const int8_t *)ck_alloc(c, rows * p.k / 4, 0), ck_alloc(c, rows * p.w.blocks, 0),
                          (const int32_t *)(const void *)ck_alloc(c, rows * p.w.blocks, 0), NULL, NULL};
      const double t = ck_time(run_job, &j);
      j.kernel = scalar;
      const double ts = k == scalar ? 0 : ck_time(run_job, &j);
      char label[64];
      snprintf(label, sizeof label, "%u bits, %zux2048x256", bits, rows);
      const ck_work work = {.flops = 2.0 * 2048 * 256 * (double)rows,
                            .read = 16.0 * (double)hn_coded_panel_bytes(&p.w)};
      ck_bench_line(c, label, t, &work, ts);
      ck_release_all(c);
    }
}

const ck_family ck_family_coded = {"coded", check, bench};
