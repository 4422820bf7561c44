#include "model/ir/bytes.h"

#include "base/half.h"
#include "base/wide.h"

#include <math.h>
#include <string.h>

/* One run. Reads byte-wise, so that any alignment will do, in blocks that compilers turn into vectors. True
 * when a product may have left the range (it is infinite, or was never finite). */
HN_WIDE_BODY bool scale_body(const unsigned char *from, double s, int64_t n, float *restrict out) {
  enum { BLOCK = 32 };
  uint32_t most[BLOCK] = {0}, all = 0;
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    float x[BLOCK];
    uint32_t bits[BLOCK];
    memcpy(x, from + i * (int64_t)sizeof *x, sizeof x);
    for (int j = 0; j < BLOCK; j++) x[j] = (float)((double)x[j] * s);
    memcpy(bits, x, sizeof bits);
    for (int j = 0; j < BLOCK; j++) {
      uint32_t magnitude = bits[j] & 0x7fffffffu;
      most[j] = magnitude > most[j] ? magnitude : most[j];
    }
    memcpy(out + i, x, sizeof x);
  }
  for (; i < n; i++) {
    float x;
    uint32_t bits;
    memcpy(&x, from + i * (int64_t)sizeof x, sizeof x);
    out[i] = (float)((double)x * s);
    memcpy(&bits, &out[i], sizeof bits);
    all = (bits & 0x7fffffffu) > all ? bits & 0x7fffffffu : all;
  }
  for (int j = 0; j < BLOCK; j++) all = most[j] > all ? most[j] : all;
  return all >= 0x7f800000u;
}

HN_WIDE(bool, scale, scale_body, (const unsigned char *from, double s, int64_t n, float *restrict out),
        (from, s, n, out))

HN_WIDE_BODY void widen_body(const unsigned char *from, bool brain, int64_t n, float *restrict out) {
  enum { BLOCK = 32 };
  for (int64_t i = 0; i < n; i += BLOCK) {
    uint16_t h[BLOCK] = {0};
    float x[BLOCK];
    const int64_t m = n - i < BLOCK ? n - i : BLOCK;
    memcpy(h, from + i * (int64_t)sizeof *h, (size_t)m * sizeof *h);
    if (brain)
      for (int j = 0; j < BLOCK; j++) x[j] = hn_bf16_to_f32(h[j]);
    else
      for (int j = 0; j < BLOCK; j++) x[j] = hn_f16_to_f32(h[j]);
    memcpy(out + i, x, (size_t)m * sizeof *x);
  }
}

HN_WIDE(void, widen, widen_body, (const unsigned char *from, bool brain, int64_t n, float *restrict out),
        (from, brain, n, out))

/* n elements from element i on, scaled; false when a finite number became infinite. */
static bool make_part(const hn_deferred *d, int64_t i, double factor, int64_t n, float *out) {
  const unsigned char *from = (const unsigned char *)d->from + i * (int64_t)hone_dtype_size(d->type);
  bool good = true;
  if (!scale(from, factor, n, out)) return true;
  for (int64_t j = 0; j < n; j++) {
    float x;
    memcpy(&x, from + j * (int64_t)sizeof x, sizeof x);
    good &= !(fabsf(x) <= 3.4028234e38f) || fabsf(out[j]) <= 3.4028234e38f;
  }
  return good;
}

/* The same from 16 bits, a part at a time. */
static bool make_wide(const hn_deferred *d, int64_t i, double factor, int64_t n, float *out) {
  enum { PART = 2048 };
  const unsigned char *from = (const unsigned char *)d->from + i * (int64_t)sizeof(uint16_t);
  bool good = true;
  float part[PART];
  for (int64_t j = 0; j < n; j += PART) {
    const int64_t m = n - j < PART ? n - j : PART;
    widen(from + j * (int64_t)sizeof(uint16_t), d->type == HONE_DTYPE_BF16, m, d->factor ? part : out + j);
    if (!d->factor) continue;
    const hn_deferred wide = {.from = part, .type = HONE_DTYPE_F32, .count = m};
    good &= make_part(&wide, 0, factor, m, out + j);
  }
  return good;
}

bool hn_deferred_make(const hn_deferred *d, float *out) {
  bool good = true;
  for (int64_t run = 0, i = 0; i < d->count; run++, i += d->runs.length) {
    const double factor = d->factor ? d->factor[hn_run_channel(&d->runs, run)] : 1;
    if (d->type == HONE_DTYPE_F32)
      good &= make_part(d, i, factor, d->runs.length, out + i);
    else
      good &= make_wide(d, i, factor, d->runs.length, out + i);
  }
  return good;
}

hone_dtype hn_value_was_half(const hn_value *v) {
  const hn_deferred *d = v->deferred;
  if (!v->constant || v->producer || v->constant->desc.dtype != HONE_DTYPE_F32) return HONE_DTYPE_NONE;
  const hone_dtype type = !d ? v->was : d->factor ? HONE_DTYPE_NONE : d->type;
  return type == HONE_DTYPE_F16 || type == HONE_DTYPE_BF16 ? type : HONE_DTYPE_NONE;
}

bool hn_value_make_bytes(const hn_value *v) {
  const hn_deferred *d = v->deferred;
  if (!d) return true;
  hn_arena *a = &v->graph->model->arena;
  float *data = hn_arena_raw(a, (size_t)d->count * sizeof *data, HN_MEM_ALIGN);
  hone_tensor *t = HN_NEW(a, hone_tensor);
  if (!data || !t || !hn_deferred_make(d, data)) return false;
  *t = (hone_tensor){v->constant->desc, data};
  hn_value *made = (hn_value *)(uintptr_t)v; /* the same value as before, now with its bytes */
  made->constant = t;
  made->deferred = NULL;
  return true;
}

bool hn_is_aligned(const hone_tensor *t) {
  size_t size = hone_dtype_size(t->desc.dtype);
  return !size || (t->desc.dtype == HONE_DTYPE_STRING) || (uintptr_t)t->data % size == 0;
}

void hn_model_drop_pages(const hn_model *m, const void *p, size_t size) {
  uintptr_t at = (uintptr_t)p;
  for (; m; m = m->borrowed_from)
    for (size_t i = 0; i < m->files.len; i++) {
      uintptr_t begin = (uintptr_t)m->files.ptr[i].data, end = begin + m->files.ptr[i].size;
      if (at < begin || at >= end) continue;
      hn_file_drop(&m->files.ptr[i], at - begin, size);
      return;
    }
}

void hn_model_drop_all_pages(const hn_model *m) {
  for (; m; m = m->borrowed_from)
    for (size_t i = 0; i < m->files.len; i++) hn_file_drop(&m->files.ptr[i], 0, m->files.ptr[i].size);
}

const void *hn_model_filled(const hn_model *m, const void *element, size_t item, size_t bytes) {
  for (const hn_filled *f = m->filled; f; f = f->next)
    if (f->item == item && f->bytes >= bytes && memcmp(f->data, element, item) == 0) return f->data;
  return NULL;
}

bool hn_model_note_filled(hn_model *m, const void *data, size_t item, size_t bytes) {
  hn_filled *f = HN_NEW(&m->arena, hn_filled);
  if (!f) return false;
  *f = (hn_filled){data, bytes, item, m->filled};
  m->filled = f;
  return true;
}

bool hn_model_is_filled(const hn_model *m, const void *data) {
  const hn_filled *f = m->filled;
  while (f && f->data != data) f = f->next;
  return f;
}

bool hn_model_owns(const hn_model *m, const void *p) { return hn_arena_owns(&m->arena, p); }
