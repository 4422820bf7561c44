#include "model/ir/bytes.h"

#include <math.h>
#include <string.h>

/* One run. Reads byte-wise, so that any alignment will do; compilers make vector loads of it. */
static bool scale(const unsigned char *from, double s, int64_t n, float *restrict out) {
  int bad = 0;
  for (int64_t i = 0; i < n; i++) {
    float x;
    memcpy(&x, from + i * (int64_t)sizeof x, sizeof x);
    float y = (float)((double)x * s);
    out[i] = y;
    bad |= (fabsf(y) > 3.4028234e38f) & (fabsf(x) <= 3.4028234e38f);
  }
  return !bad;
}

bool hn_deferred_make(const hn_deferred *d, float *out) {
  const unsigned char *from = d->from;
  bool good = true;
  for (int64_t run = 0, i = 0; i < d->count; run++, i += d->runs.length)
    good &= scale(from + i * (int64_t)sizeof *out, d->factor[hn_run_channel(&d->runs, run)], d->runs.length,
                  out + i);
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
