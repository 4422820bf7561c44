#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/kernels/features.h"
#include "base/fault.h"

void hn_bf16_join(hn_bf16_conv *c, int64_t groups) {
  c->joined = groups;
  c->groups /= groups, c->cin *= groups, c->cout *= groups;
}

void hn_bf16_spread(const hn_bf16_conv *c, const float *from, float *to) {
  const int64_t column = c->cin * c->kernel[0] * c->kernel[1] * c->kernel[2], own = column / c->joined,
                cout = c->cout / c->joined;
  memset(to, 0, (size_t)(c->cout * column) * sizeof *to);
  for (int64_t j = 0; j < c->cout; j++)
    memcpy(to + j * column + (HN_FAULT("bf16_joined") ? 0 : j / cout * own), from + j * own,
           (size_t)own * sizeof *to);
}

/* One tile: 32 values of k (places at[]) of `live` columns from `b` on; part 2 lies `apart` behind. */
static void pack_tile(const hn_bf16_ops *o, const float *b, const int64_t *at, int64_t sn, size_t live,
                      float scale, uint16_t *to, size_t apart, uint32_t parts) {
  if (o->pack_tile && o->pack_tile(b, at, sn, live, scale, to, (ptrdiff_t)apart, parts)) return;
  for (size_t j = 0; j < 16; j++) {
    float row[HN_BF16_STEP] = {0};
    uint16_t part[2][HN_BF16_STEP];
    for (size_t k = 0; k < HN_BF16_STEP && j < live; k++) {
      if (at[k] < 0) continue;
      memcpy(&row[k], b + (int64_t)j * sn + at[k],
             sizeof row[k]); /* weights of a file lie at any alignment */
      row[k] *= scale;
    }
    if (parts > 2) {
      for (size_t p = 0; p < HN_BF16_STEP / 2; p++) memcpy(to + 2 * (p * 32 + j * 2), &row[2 * p], 8);
      continue;
    }
    o->split(row, HN_BF16_STEP, part[0], HN_BF16_STEP, parts);
    for (uint32_t i = 0; i < parts; i++)
      for (size_t p = 0; p < HN_BF16_STEP / 2; p++)
        memcpy(to + i * apart + p * 32 + j * 2, &part[i][2 * p], 4);
  }
}

/* A panel of `width` columns of which `live` are there, a row of all columns for each k. */
static void pack_f16(const hn_bf16_ops *o, const float *b, const int64_t *at, int64_t sn, size_t k,
                     size_t live, size_t width, float scale, uint16_t *to) {
  float row[HN_BF16_PANEL] = {0};
  for (size_t i = 0; i < k; i++, to += width) {
    for (size_t j = 0; j < live; j++) {
      row[j] = 0;
      if (at[i] >= 0) memcpy(&row[j], b + (int64_t)j * sn + at[i], sizeof row[j]);
      row[j] *= scale;
    }
    o->split(row, width, to, 0, 1);
  }
}

/* Steps [s0, s1) of a panel. */
static void pack_panel(const hn_bf16_ops *o, const float *b, const int64_t *at, int64_t sn, size_t s0,
                       size_t s1, size_t left, float scale, uint32_t parts, uint16_t *panel) {
  const size_t tiles = left > 16 ? 2 : 1, step = hn_bf16_packed(tiles * 16, 1, parts);
  for (size_t s = s0; s < s1; s++)
    for (size_t t = 0; t < tiles; t++) {
      size_t live = left - 16 * t < 16 ? left - 16 * t : 16;
      if (HN_FAULT("bf16_pack_last_column") && live > 1) live--;
      uint16_t *to = panel + s * step + t * HN_BF16_TILE * (parts > 2 ? 2 : 1);
      pack_tile(o, b + (int64_t)(16 * t) * sn, at + s * HN_BF16_STEP, sn, live, scale, to,
                tiles * HN_BF16_TILE, parts);
    }
}

void hn_bf16_pack(const hn_bf16_ops *o, const float *b, const int64_t *at, int64_t sn, size_t steps, size_t n,
                  size_t n0, size_t n1, float scale, uint32_t parts, uint16_t *dst) {
  /* B's rows are read from end to end where they are contiguous, else its columns. */
  const size_t together = sn == 1 && !o->f16 ? 1 : steps;
  for (size_t s = 0; s < steps; s += together)
    for (size_t c = n0; c < n1; c += HN_BF16_PANEL) {
      uint16_t *panel = dst + hn_bf16_packed(c, steps, parts);
      const float *from = b + (int64_t)c * sn;
      if (!o->f16) {
        pack_panel(o, from, at, sn, s, s + together, n - c, scale, parts, panel);
        continue;
      }
      size_t live = n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL;
      if (HN_FAULT("bf16_pack_last_column") && live > 1) live--;
      pack_f16(o, from, at, sn, steps * HN_BF16_STEP, live, n - c > 16 ? 32 : 16, scale, panel);
    }
}

void hn_bf16_part(const hn_bf16_ops *o, const uint16_t *packed, size_t n, size_t steps, uint16_t *to) {
  const size_t values = (n > 16 ? 2 : 1) * HN_BF16_TILE;
  const float *from = (const float *)(const void *)packed;
  for (size_t s = 0; s < steps; s++, from += values, to += 3 * values)
    o->split(from, values, to, (ptrdiff_t)values, 3);
}

double hn_bf16_rate(const hn_bf16_ops *o) { return o->x1_rate > 0 ? o->x1_rate : hn_cpu()->bf16_rate; }

static const hn_bf16_ops *find(hn_isa isa, const char *role, const hn_bf16_ops *_Atomic *found) {
  if ((unsigned)isa >= HN_ISA_COUNT || isa < HN_ISA_AVX512BF16) return NULL;
  const hn_bf16_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("gemm_bf16", role, isa);
  if (!k || k->isa < HN_ISA_AVX512BF16) return NULL;
  o = k->ops;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}

const hn_bf16_ops *hn_bf16_find(hn_isa isa) {
  static const hn_bf16_ops *_Atomic found[HN_ISA_COUNT];
  return find(isa, "bf16", found);
}

const hn_bf16_ops *hn_f16_find(hn_isa isa) {
  static const hn_bf16_ops *_Atomic found[HN_ISA_COUNT];
  return hn_cpu()->fp16 ? find(isa, "f16", found) : NULL;
}
