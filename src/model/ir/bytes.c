#include "model/ir/bytes.h"

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

bool hn_deferred_make(const hn_deferred *d, float *out) {
  bool good = true;
  for (int64_t run = 0, i = 0; i < d->count; run++, i += d->runs.length) {
    const unsigned char *from = (const unsigned char *)d->from + i * (int64_t)sizeof *out;
    bool odd = scale(from, d->factor[hn_run_channel(&d->runs, run)], d->runs.length, out + i);
    for (int64_t j = 0; odd && j < d->runs.length; j++) {
      float x;
      memcpy(&x, from + j * (int64_t)sizeof x, sizeof x);
      good &= !(fabsf(x) <= 3.4028234e38f) || fabsf(out[i + j]) <= 3.4028234e38f;
    }
  }
  return good;
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

bool hn_model_owns(const hn_model *m, const void *p) { return hn_arena_owns(&m->arena, p); }
