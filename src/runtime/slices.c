#include "runtime/slices.h"

#include "base/error.h"

#include <string.h>

hone_status hn_slices_open(const hn_plan *p, hn_slices *out, hone_error *error) {
  *out = (hn_slices){0};
  if (p->slices < 2) return HONE_OK;
  out->part = hn_calloc(p->n_inputs, sizeof *out->part);
  out->list = hn_calloc(p->n_inputs, sizeof *out->list);
  out->whole = hn_calloc(p->n_outputs, sizeof *out->whole);
  out->own = hn_calloc(p->n_outputs, sizeof *out->own);
  if (!out->part || !out->list || !out->whole || !out->own)
    return hn_fail_memory(error, p->n_outputs * sizeof *out->whole, "slices of a batch");
  for (uint32_t i = 0; i < p->n_outputs; i++) out->whole[i].desc = p->output_desc[i];
  return HONE_OK;
}

void hn_slices_close(const hn_plan *p, hn_slices *s) {
  for (uint32_t i = 0; s->own && i < p->n_outputs; i++)
    hn_device_free(p->backend, p->device, true, s->own[i]);
  hn_free(s->part);
  hn_free((void *)s->list);
  hn_free(s->whole);
  hn_free(s->own);
  *s = (hn_slices){0};
}

hone_status hn_slices_place(const hn_plan *p, hn_slices *s, uint32_t i, void *lent, hone_error *error) {
  s->whole[i].data = lent ? lent : s->own[i];
  if (s->whole[i].data) return HONE_OK;
  const size_t bytes = (size_t)hone_desc_bytes(&p->output_desc[i]);
  s->own[i] = hn_device_alloc(p->backend, p->device, &p->tenant, true, HONE_MEMORY_FOR_IO, bytes ? bytes : 1);
  if (!s->own[i]) return hn_fail_memory(error, bytes, p->outputs[i]->name);
  s->whole[i].data = s->own[i];
  return HONE_OK;
}

/* The batch is the first dimension in every layout: a slice is a run of bytes. */
const hone_tensor *const *hn_slices_cut(const hn_plan *p, hn_slices *s, const hone_tensor *const *all,
                                        uint32_t k) {
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    hone_tensor_desc d = all[i]->desc;
    d.dim[0] /= p->slices;
    s->part[i] = (hone_tensor){d, (char *)all[i]->data + (size_t)k * (size_t)hone_desc_bytes(&d)};
    s->list[i] = &s->part[i];
  }
  return s->list;
}

void hn_slices_join(hn_slices *s, uint32_t i, uint32_t k, const hone_tensor *made) {
  const size_t bytes = (size_t)hone_desc_bytes(&made->desc);
  memcpy((char *)s->whole[i].data + (size_t)k * bytes, made->data, bytes);
}
