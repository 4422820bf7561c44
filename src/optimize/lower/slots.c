/* Where values live: a slot for each layout of a value. */
#include "optimize/lower/emit.h"

#include "model/ir/bytes.h"

#include <string.h>

uint32_t hn_slot_new(hn_lowering *l, const hone_tensor_desc *desc, const hn_value *value, hn_place place) {
  hn_plan *p = l->plan;
  int64_t bytes = hone_desc_known(desc) ? hone_desc_bytes(desc) : 0;
  hn_slot s = {.desc = *desc,
               .value = value,
               .place = place,
               .alias = HN_NO_SLOT,
               .bytes = bytes > 0 ? (uint64_t)bytes : 0};
  return hn_vec_push(&p->slots, s) ? (uint32_t)p->slots.len - 1 : HN_NO_SLOT;
}

uint32_t hn_slot_alias(hn_lowering *l, uint32_t of, const hone_tensor_desc *desc, const hn_value *value) {
  uint32_t s = hn_slot_new(l, desc, value, l->plan->slots.ptr[of].place);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &l->plan->slots.ptr[s], *o = &l->plan->slots.ptr[of];
  a->alias = of;
  a->constant = o->constant;
  a->input = o->input;
  if (o->alias != HN_NO_SLOT) a->offset = o->offset;
  return s;
}

uint32_t hn_slot_part(hn_lowering *l, uint32_t of, const hn_strided *part) {
  hone_tensor_desc d = part->desc;
  d.dtype = l->plan->slots.ptr[of].desc.dtype;
  d.device = l->plan->slots.ptr[of].desc.device;
  uint32_t s = hn_slot_alias(l, of, &d, part->base);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &l->plan->slots.ptr[s];
  const uint64_t bytes = (uint64_t)part->offset * hone_dtype_size(d.dtype);
  a->offset += bytes;
  if (a->constant) a->constant = (const char *)a->constant + bytes;
  return s;
}

uint32_t *hn_slots_of(hn_lowering *l, const hn_value *v) {
  uint32_t **at = &l->slot_of[v->id];
  if (!*at) {
    *at = HN_NEW_ARRAY(l->temp, uint32_t, HN_FORMS);
    for (uint32_t f = 0; *at && f < HN_FORMS; f++) (*at)[f] = HN_NO_SLOT;
  }
  return *at;
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

hn_form hn_form_at_hand(hn_lowering *l, const hn_value *v, const hn_form *list, uint32_t n) {
  const uint32_t *s = v && !(v->constant && !v->producer) ? l->slot_of[v->id] : NULL;
  for (uint32_t i = 0; s && i < n; i++)
    if (s[list[i]] != HN_NO_SLOT) return list[i];
  return HN_FORMS;
}

/* Bytes of a constant in another layout, made once at plan time. */
static const void *permuted(hn_lowering *l, const hone_tensor *t, const hone_tensor_desc *to) {
  int64_t n = hone_desc_count(&t->desc);
  size_t size = hone_dtype_size(t->desc.dtype);
  char *out = hn_arena_aligned(&l->plan->arena, (size_t)hone_desc_bytes(to), HN_MEM_ALIGN);
  if (!out) return NULL;
  int64_t index[HONE_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) {
    memcpy(out + (size_t)at * size, (const char *)t->data + (size_t)i * size, size);
    for (int32_t d = to->rank - 1; d >= 0; d--) {
      at += to->stride[d];
      if (++index[d] < to->dim[d]) break;
      at -= to->stride[d] * to->dim[d];
      index[d] = 0;
    }
  }
  l->plan->constant_bytes += (uint64_t)n * size;
  return out;
}

uint32_t hn_lower_constant(hn_lowering *l, const hn_value *v, hn_form form) {
  const hone_layout layout =
      form == HN_HOST || !(form & HN_LAST) ? HONE_LAYOUT_ROW_MAJOR : HONE_LAYOUT_CHANNELS_LAST;
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  if (s[layout] != HN_NO_SLOT) return s[layout];
  hone_tensor_desc d = v->constant->desc;
  if (hone_desc_known(&d)) hone_desc_set_layout(&d, layout, 0);
  uint32_t slot = hn_slot_new(l, &d, v, HN_PLACE_CONST);
  if (slot == HN_NO_SLOT) return slot;
  bool as_is = layout == HONE_LAYOUT_ROW_MAJOR || hn_layout_free(&d);
  if (!as_is && !hn_value_make_bytes(v)) return HN_NO_SLOT;
  const void *data = !as_is        ? permuted(l, v->constant, &d)
                     : v->deferred ? v->deferred->from
                                   : v->constant->data;
  if (!data) return HN_NO_SLOT;
  l->plan->slots.ptr[slot].constant = data;
  l->plan->slots.ptr[slot].deferred = v->deferred;
  return s[layout] = slot;
}

/* A vector of `n` floats in the plan. */
uint32_t hn_slot_vector(hn_lowering *l, const float *data, int64_t n) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  float *copy = hn_arena_aligned(&l->plan->arena, (size_t)n * sizeof *copy, HN_MEM_ALIGN);
  uint32_t slot = copy ? hn_slot_new(l, &d, NULL, HN_PLACE_CONST) : HN_NO_SLOT;
  if (slot == HN_NO_SLOT) return slot;
  memcpy(copy, data, (size_t)n * sizeof *copy);
  l->plan->slots.ptr[slot].constant = copy;
  return slot;
}
