#include "improve/values.h"

#include "base/error.h"
#include "base/strided.h"

#define KEEP_BYTES ((uint64_t)2 << 30) /* later values are left out; a search then sees a little less */

hone_tensor *hn_rows_of(const hone_tensor *t) {
  hone_tensor_desc d = hone_desc(t->desc.dtype, t->desc.rank, t->desc.dim);
  int64_t bytes = hone_desc_bytes(&d);
  hone_tensor *out = bytes < 0 ? NULL : hn_malloc(sizeof *out);
  if (!out) return NULL;
  *out = (hone_tensor){d, hn_malloc((size_t)bytes)};
  if (!out->data) {
    hn_free(out);
    return NULL;
  }
  hn_strided_copy(t, out);
  return out;
}

void hn_rows_put(const hone_tensor *rows, hone_tensor *to) { hn_strided_copy(rows, to); }

void hn_rows_free(hone_tensor *t) {
  if (t) hn_free(t->data);
  hn_free(t);
}

const hn_value *hn_value_of_step(const hn_plan *p, const hn_step *s, uint32_t i) {
  return s->out[i] == HN_NO_SLOT ? NULL : p->slots.ptr[s->out[i]].value;
}

static bool comparable(const hone_tensor *t) {
  return t && t->data && !hn_dtype_points(t->desc.dtype) && t->desc.dtype != HONE_DTYPE_NONE;
}

static void keep(void *arg, const hn_step *s, hone_tensor *const *out) {
  hn_values *q = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = hn_value_of_step(q->plan, s, i);
    if (!v || !comparable(out[i]) || hn_map_has(&q->kept, v->name)) continue;
    int64_t bytes = hone_desc_bytes(&out[i]->desc);
    if (bytes < 0 || q->bytes + (uint64_t)bytes > KEEP_BYTES) continue;
    hone_tensor *t = hn_rows_of(out[i]);
    if (!t || !hn_vec_push(&q->tensors, t)) {
      hn_rows_free(t);
      q->failed = true;
      return;
    }
    q->failed |= !hn_map_set(&q->kept, v->name, t);
    q->bytes += (uint64_t)bytes;
  }
}

hone_status hn_values_of_run(hn_side *side, const hn_feed *feeds, uint32_t n, hn_values *out,
                             hone_error *error) {
  *out = (hn_values){.plan = side->plan};
  hn_context_watch(side->context, keep, out, false);
  hone_status status = hn_side_run(side, feeds, n, error);
  hn_context_watch(side->context, NULL, NULL, false);
  if (status == HONE_OK && out->failed)
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while keeping every value of a run");
  return status;
}

const hone_tensor *hn_values_like(const hn_values *values, const hn_value *v, const hone_tensor *t) {
  const hone_tensor *ref = v && comparable(t) ? hn_map_get(&values->kept, v->name) : NULL;
  return ref && ref->desc.dtype == t->desc.dtype && hone_desc_same_dims(&ref->desc, &t->desc) ? ref : NULL;
}

void hn_values_free(hn_values *q) {
  for (size_t i = 0; i < q->tensors.len; i++) hn_rows_free(q->tensors.ptr[i]);
  hn_vec_free(&q->tensors);
  hn_map_free(&q->kept);
  *q = (hn_values){0};
}
