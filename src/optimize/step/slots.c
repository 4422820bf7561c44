#include "optimize/step/slots.h"

#include <string.h>

hone_quant hn_quant_of(const hn_plan *p, const hn_value *v, const hone_tensor_desc *d) {
  const hone_quant none = {0};
  /* A constant of the plan may stand for what was dequantised. */
  if (!v || v->id >= p->n_values || d->dtype != v->desc.dtype || hone_dtype_is_float(d->dtype)) return none;
  const hone_quant q = p->quant[v->id];
  /* Parts of a tensor have their own dimensions. */
  if (q.count > 1 && (q.axis >= d->rank || (d->dim[q.axis] >= 0 && d->dim[q.axis] != q.count))) return none;
  return q;
}

uint32_t hn_slot_new(hn_plan *p, const hone_tensor_desc *desc, const hn_value *value, hn_place place) {
  int64_t bytes = hone_desc_known(desc) ? hone_desc_bytes(desc) : 0;
  hn_slot s = {.desc = *desc,
               .value = value,
               .place = place,
               .alias = HN_NO_SLOT,
               .bytes = bytes > 0 ? (uint64_t)bytes : 0};
  s.desc.quant = hn_quant_of(p, value, desc);
  return hn_vec_push(&p->slots, s) ? (uint32_t)p->slots.len - 1 : HN_NO_SLOT;
}

uint32_t hn_slot_alias(hn_plan *p, uint32_t of, const hone_tensor_desc *desc, const hn_value *value) {
  uint32_t s = hn_slot_new(p, desc, value, p->slots.ptr[of].place);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &p->slots.ptr[s], *o = &p->slots.ptr[of];
  a->alias = of;
  a->constant = o->constant;
  a->input = o->input;
  if (o->alias != HN_NO_SLOT) a->offset = o->offset;
  return s;
}

uint32_t hn_slot_part(hn_plan *p, uint32_t of, const hone_tensor_desc *desc, int64_t at,
                      const hn_value *value) {
  hone_tensor_desc d = *desc;
  d.dtype = p->slots.ptr[of].desc.dtype;
  d.device = p->slots.ptr[of].desc.device;
  uint32_t s = hn_slot_alias(p, of, &d, value);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &p->slots.ptr[s];
  const uint64_t bytes = (uint64_t)at * hone_dtype_size(d.dtype);
  a->offset += bytes;
  if (a->constant) a->constant = (const char *)a->constant + bytes;
  return s;
}

hone_tensor_desc hn_laid_out(const hn_plan *p, const hone_tensor_desc *d, hn_form form) {
  hone_tensor_desc r = *d;
  if (form & HN_NARROW && r.dtype == HONE_DTYPE_F32) r.dtype = p->storage;
  const bool device = p->backend->asynchronous && form != HN_HOST, last = form & HN_LAST;
  r.device = device;
  if (hone_desc_known(d))
    hone_desc_set_layout(&r, last ? HONE_LAYOUT_CHANNELS_LAST : HONE_LAYOUT_ROW_MAJOR,
                         device && last && r.rank >= 3 ? hn_channel_pitch(&r) : 0);
  return r;
}

hone_tensor_desc hn_stored(const hn_plan *p, const hone_tensor_desc *d, hn_form form) {
  hone_tensor_desc r = *d;
  if (form & HN_NARROW && r.dtype == HONE_DTYPE_F32) r.dtype = p->storage;
  r.device = p->backend->asynchronous && form != HN_HOST;
  return r;
}

hn_form hn_home(const hn_plan *p) { return p->backend->asynchronous ? HN_HOST : HN_ROW; }

uint32_t hn_slot_vector(hn_plan *p, const float *data, int64_t n) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  float *copy = hn_arena_aligned(&p->arena, (size_t)n * sizeof *copy, HN_MEM_ALIGN);
  uint32_t slot = copy ? hn_slot_new(p, &d, NULL, HN_PLACE_CONST) : HN_NO_SLOT;
  if (slot == HN_NO_SLOT) return slot;
  memcpy(copy, data, (size_t)n * sizeof *copy);
  p->slots.ptr[slot].constant = copy;
  return slot;
}
