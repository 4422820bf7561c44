#include "backends/cpu/product/coded_step.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/ops/microsoft/codes/nbits.h"

enum { A, CODES, SCALES, ZEROS, GROUPS, BIAS };
enum { PANEL = HN_CODED_PANEL };

static bool has(const hone_step *s, uint32_t i) { return i < s->n_anchor_inputs && hn_step_has(s, i); }

static bool constant(const hone_step *s, uint32_t i, hone_dtype type) {
  const hone_step_tensor *t = &s->input[i];
  return t->constant && t->desc.dtype == type && hn_step_plain(&t->desc);
}

/* Of the panels: their codes are of 4 or 8 bits. */
static hn_coded form_of(const hn_coded_step *d) {
  return (hn_coded){.blocks = (size_t)d->blocks,
                    .block = (size_t)d->block,
                    .bits = d->bits < 8 ? 4 : (uint32_t)d->bits,
                    .bf16 = (uint32_t)d->bf16};
}

static size_t zero_bytes(const hn_coded_step *d) {
  return d->zeros == 0 ? 0 : (size_t)(hn_fill_up(d->n, PANEL) * d->blocks) * (d->zeros == 2 ? 4 : 1);
}

size_t hn_coded_panels_bytes(const hn_coded_step *d) {
  const hn_coded f = form_of(d);
  return (size_t)hn_div_up(d->n, PANEL) * hn_coded_panel_bytes(&f) + zero_bytes(d);
}

bool hn_coded_describe_nbits(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[A].desc, *y = &s->output[0].desc;
  hn_nbits w;
  memset(d, 0, sizeof *d);
  d->isa = hn_isa_of(m->isa);
  if (!hn_coded_find(d->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(d->isa));
  if (!s->node || hn_nbits_of(s->node, &w, NULL)) return hn_refuse(why, "its attributes");
  if (!hn_step_plain_f32(a) || !hn_step_plain_f32(y)) return hn_refuse(why, "not row-major and f32");
  if (!constant(s, CODES, HONE_DTYPE_U8) || !constant(s, SCALES, HONE_DTYPE_F32))
    return hn_refuse(why, "codes or scales are not constant, or of other types");
  if (has(s, GROUPS)) return hn_refuse(why, "rows in groups");
  if (has(s, BIAS) && s->input[BIAS].desc.dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "a bias that is not f32");
  if (has(s, ZEROS)) {
    d->zeros = constant(s, ZEROS, HONE_DTYPE_U8) ? 1 : constant(s, ZEROS, HONE_DTYPE_F32) ? 2 : 0;
    if (!d->zeros) return hn_refuse(why, "zero points are neither constant codes nor f32");
  }
  d->k = w.rows, d->n = w.columns, d->bits = w.bits, d->block = w.block, d->blocks = w.blocks;
  d->m = hone_desc_count(a) / d->k;
  d->level = hone_node_int(s->node, "accuracy_level", 0);
  d->bias = has(s, BIAS) ? BIAS : 0;
  if (d->m < 1) return hn_refuse(why, "an empty operand");
  if (!hn_epilogue_accepts(s, d->isa, true, why)) return false;
  d->bytes = HN_CODED_HEAD + (int64_t)hn_coded_panels_bytes(d);
  return true;
}

/* MatMul and Gemm of f32 rows by constants of 16 bits. */
static bool describe_halves(const hone_step *s, const hone_machine *m, bool turned, hn_coded_step *d,
                            hone_reason *why) {
  enum { GROUP = 8 };
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  memset(d, 0, sizeof *d);
  d->isa = hn_isa_of(m->isa);
  if (!hn_coded_find(d->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(d->isa));
  if (!s->input[1].constant || (b->dtype != HONE_DTYPE_F16 && b->dtype != HONE_DTYPE_BF16))
    return hn_refuse(why, "B is no constant of 16-bit floats");
  if (!hn_step_plain_f32(a) || !hn_step_plain_f32(y) || !hn_step_plain(b))
    return hn_refuse(why, "not row-major, or A and the result are not f32");
  if (a->rank < 2 || b->rank != 2) return hn_refuse(why, "operands are no matrices");
  d->turned = turned;
  d->k = b->dim[turned], d->n = b->dim[!turned];
  if (d->k < 1 || d->n < 1 || a->dim[a->rank - 1] != d->k) return hn_refuse(why, "an empty operand");
  d->m = hone_desc_count(a) / d->k;
  if (d->m < 1) return hn_refuse(why, "an empty operand");
  d->bits = 16, d->bf16 = b->dtype == HONE_DTYPE_BF16;
  d->blocks = 1, d->block = hn_fill_up(d->k, GROUP);
  if (!hn_epilogue_accepts(s, d->isa, true, why)) return false;
  d->bytes = HN_CODED_HEAD + (int64_t)hn_coded_panels_bytes(d);
  return true;
}

bool hn_coded_describe_matmul(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why) {
  return describe_halves(s, m, false, d, why);
}

bool hn_coded_describe_gemm(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why) {
  enum { C = 2 };
  if (!describe_halves(s, m, hone_node_int(s->node, "transB", 0) != 0, d, why)) return false;
  if (hone_node_int(s->node, "transA", 0) || hone_node_float(s->node, "alpha", 1) != 1.0f)
    return hn_refuse(why, "A is transposed, or products have a factor");
  if (!has(s, C) || hone_node_float(s->node, "beta", 1) == 0.0f) return true;
  const hone_tensor_desc *c = &s->input[C].desc;
  if (hone_node_float(s->node, "beta", 1) != 1.0f || !hn_step_plain_f32(c) || hone_desc_count(c) != d->n ||
      c->rank < 1 || c->dim[c->rank - 1] != d->n)
    return hn_refuse(why, "C is no row");
  d->bias = C;
  return true;
}

void hn_coded_need(const hn_coded_step *d, hone_tactic_need *n) {
  n->blob_bytes = (size_t)d->bytes;
  if (d->bits == 16) {
    n->packed = n->bytewise = 1u << CODES;
    return;
  }
  n->packed = 1u << CODES | 1u << SCALES | (d->zeros ? 1u << ZEROS : 0);
  n->bytewise = 1u << CODES | (d->zeros == 1 ? 1u << ZEROS : 0);
}

static size_t shared(const hone_step *s, const hone_machine *m, hn_coded_describe describe, uint64_t *key) {
  hn_coded_step d;
  if (!describe(s, m, &d, NULL)) return 0;
  const int64_t form[] = {d.bits, d.block, d.blocks, d.n, d.zeros, d.bf16, d.turned};
  *key = hn_hash(form, sizeof form, 0);
  return HN_CODED_HEAD;
}

size_t hn_coded_shared_nbits(const hone_step *s, const hone_machine *m, uint64_t *key) {
  return shared(s, m, hn_coded_describe_nbits, key);
}
size_t hn_coded_shared_matmul(const hone_step *s, const hone_machine *m, uint64_t *key) {
  return shared(s, m, hn_coded_describe_matmul, key);
}
size_t hn_coded_shared_gemm(const hone_step *s, const hone_machine *m, uint64_t *key) {
  return shared(s, m, hn_coded_describe_gemm, key);
}

/* Four codes of 4 bits, one behind the other, as the low halves of bytes. */
static inline uint32_t apart(uint32_t x) {
  x = (x | x << 8) & 0x00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f;
}

/* The codes of one block of one column into its lane, as two's complement of what they are less the middle.
 */
static void put_block(const hn_coded_step *d, const uint8_t *from, uint8_t *to) {
  const int64_t each = d->bits == 8 ? 4 : 8;
  for (int64_t k = 0; k < d->block; k += each, to += HN_CODED_GROUP_BYTES) {
    uint32_t group = 0;
    if (d->bits == 2)
      for (int64_t i = 0; i < each; i++)
        group |= ((hn_nbits_code(from, 2, k + i) + 14) & 15) << (i % 4 * 8 + i / 4 * 4);
    else
      memcpy(&group, from + k * d->bits / 8, sizeof group);
    if (d->bits == 4) group = (apart(group & 0xffff) | apart(group >> 16) << 4) ^ 0x88888888u;
    if (d->bits == 8) group ^= 0x80808080u;
    memcpy(to, &group, sizeof group);
  }
}

static void put_zeros(const hn_coded_step *d, const void *zeros, void *to) {
  const int64_t row = (d->blocks * d->bits + 7) / 8;
  const int middle = 1 << (d->bits - 1);
  memset(to, 0, zero_bytes(d));
  for (int64_t c = 0; c < d->n; c++)
    for (int64_t b = 0; b < d->blocks; b++) {
      const int64_t at = (c / PANEL * d->blocks + b) * PANEL + c % PANEL;
      if (d->zeros == 2)
        ((float *)to)[at] = ((const float *)zeros)[c * d->blocks + b] - (float)middle;
      else
        ((int8_t *)to)[at] =
            (int8_t)((int)hn_nbits_code((const uint8_t *)zeros + c * row, d->bits, b) - middle);
    }
}

void hn_coded_put(const hn_coded_step *d, const uint8_t *codes, const float *scales, const void *zeros,
                  uint8_t *panels) {
  const hn_coded f = form_of(d);
  const size_t bytes = hn_coded_block_bytes(&f), panel = hn_coded_panel_bytes(&f);
  memset(panels, 0, hn_coded_panels_bytes(d));
  for (int64_t c = 0; c < d->n; c++)
    for (int64_t b = 0; b < d->blocks; b++) {
      uint8_t *to = panels + (size_t)(c / PANEL) * panel + (size_t)b * bytes;
      /* Weights of an infinite scale are infinities of both signs and NaN, whose sum is NaN. */
      const float scale = isinf(scales[c * d->blocks + b]) ? NAN : scales[c * d->blocks + b];
      memcpy(to + (size_t)(c % PANEL) * sizeof(float), &scale, sizeof(float));
      put_block(d, codes + (c * d->blocks + b) * (d->block * d->bits / 8),
                to + PANEL * sizeof(float) + (size_t)(HN_FAULT("coded_lane") ? 0 : c % PANEL) * 4);
    }
  if (d->zeros) put_zeros(d, zeros, panels + hn_coded_panels_bytes(d) - zero_bytes(d));
}

/* Columns whose k lie side by side, at any alignment. */
static void turn_halves(const hn_coded_step *d, const char *from, uint16_t *to) {
  const hn_coded f = form_of(d);
  const struct hn_transpose_ops *o = hn_transpose_find(d->isa);
  const size_t row = (size_t)d->k * sizeof *to, panel = hn_coded_panel_bytes(&f) / sizeof *to;
  const bool aligned = (uintptr_t)from % sizeof *to == 0;
  for (int64_t c = 0; c < d->n; c += PANEL) {
    uint16_t *p = to + (size_t)(c / PANEL) * panel;
    const int64_t live = hn_min(d->n - c, PANEL);
    if (aligned && o) {
      o->matrix[1](p, PANEL, from + (size_t)c * row, (ptrdiff_t)d->k, (size_t)live, (size_t)d->k);
      continue;
    }
    for (int64_t j = 0; j < live; j++)
      for (int64_t k = 0; k < d->k; k++)
        memcpy(&p[k * PANEL + j], from + (size_t)(c + j) * row + (size_t)k * sizeof *to, sizeof *to);
  }
}

/* Rows are read from end to end, a few at a time. */
static void put_halves(const hn_coded_step *d, const char *from, uint16_t *to) {
  enum { ROWS = 8 };
  const hn_coded f = form_of(d);
  const size_t panel = hn_coded_panel_bytes(&f) / sizeof *to;
  /* What lies beyond the last column and the last k. */
  memset(to + (size_t)((d->n - 1) / PANEL) * panel, 0, panel * sizeof *to);
  for (int64_t c = 0; c < d->n && d->block > d->k; c += PANEL)
    memset(to + (size_t)(c / PANEL) * panel + d->k * PANEL, 0,
           (size_t)((d->block - d->k) * PANEL) * sizeof *to);
  if (d->turned) {
    turn_halves(d, from, to);
    return;
  }
  for (int64_t k0 = 0; k0 < d->k; k0 += ROWS)
    for (int64_t c = 0; c < d->n; c += PANEL) {
      const size_t live = (size_t)hn_min(d->n - c, PANEL);
      uint16_t *p = to + (size_t)(c / PANEL) * panel;
      for (int64_t k = k0; k < d->k && k < k0 + ROWS; k++)
        memcpy(p + k * PANEL, from + (size_t)(k * d->n + c) * sizeof *to, live * sizeof *to);
    }
}

void hn_coded_pack(const hn_coded_step *d, const hone_step *s, void *blob) {
  if (s->own_only) return;
  if (d->bits == 16) {
    put_halves(d, s->input[CODES].constant, (uint16_t *)(void *)((char *)blob + HN_CODED_HEAD));
    return;
  }
  hn_coded_put(d, s->input[CODES].constant, s->input[SCALES].constant,
               d->zeros ? s->input[ZEROS].constant : NULL, (uint8_t *)blob + HN_CODED_HEAD);
}

hone_status hn_coded_fill(hn_coded_step *d, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, d, sizeof *d);
  hn_coded_pack(d, s, blob);
  return HONE_OK;
}

hn_coded hn_coded_at(const hn_coded_step *d, const uint8_t *panels) {
  hn_coded w = form_of(d);
  const uint8_t *zeros = panels + hn_coded_panels_bytes(d) - zero_bytes(d);
  w.panels = panels;
  if (d->zeros == 1) w.zero_codes = (const int8_t *)zeros;
  if (d->zeros == 2) w.zero_floats = (const float *)(const void *)zeros;
  return w;
}

hn_coded hn_coded_matrix(const hn_coded_step *d, const hone_step_run *r) {
  return hn_coded_at(d, hn_shared_at(r, HN_CODED_HEAD));
}

double hn_coded_bytes(const hn_coded_step *d) { return (double)(d->bytes - HN_CODED_HEAD); }

double hn_coded_reading(const hn_coded_step *d, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(d->isa);
  const double bytes = hn_coded_bytes(d);
  return hn_weights_cycles(bytes / (m->threads ? m->threads : 1), bytes, o, m) / hn_core_hertz(o, m);
}

size_t hn_coded_rows_bytes(const hn_coded_step *d) {
  return hn_coded_row(d) == d->k ? 0 : hn_round_up((size_t)(d->m * hn_coded_row(d)) * sizeof(float), 64);
}

const float *hn_coded_rows_of(const hn_coded_step *d, const float *a, void *workspace) {
  const int64_t row = hn_coded_row(d);
  float *to = workspace;
  if (row == d->k) return a;
  for (int64_t i = 0; i < d->m; i++, a += d->k, to += row) {
    memcpy(to, a, (size_t)d->k * sizeof *a);
    memset(to + d->k, 0, (size_t)(row - d->k) * sizeof *a);
  }
  return workspace;
}

const float *hn_coded_bias(const hn_coded_step *d, const hone_step_run *r) {
  return d->bias ? r->in[d->bias] : NULL;
}

void hn_coded_bind(const hn_coded_step *d, const hone_step_run *r, hn_epilogue *e) {
  hn_epilogue_bind_rows(r->step, d->isa, true, hn_coded_bias(d, r), r->in, e);
}

void hn_coded_finish(const hn_coded_step *d, const hn_epilogue *e, float *y, int64_t from, int64_t end) {
  if (e->n_post)
    hn_epilogue_post_pixels(e, y + from, d->n, d->m, (size_t)from, (size_t)(end - from), 0, 0, 0, 0);
}

int64_t hn_coded_columns(const hn_coded_step *d, uint32_t threads) {
  enum { PANELS = 4, SMALL = 65536 };
  /* None too small to be worth handing over. */
  const int64_t share = hn_div_up(d->n, 4 * (int64_t)threads), least = SMALL / (d->k * d->m) + 1;
  return hn_fill_up(share > least ? share : least, PANELS * PANEL);
}
