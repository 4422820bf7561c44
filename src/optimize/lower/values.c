/* Where values live: a slot for each form of a value. */
#include "optimize/lower/emit.h"

#include "base/half.h"
#include "model/ir/bytes.h"
#include "optimize/step/layout.h"

#include <string.h>

uint32_t *hn_slots_of(hn_lowering *l, const hn_value *v) {
  uint32_t **at = &l->slot_of[v->id];
  if (!*at) {
    *at = HN_NEW_ARRAY(l->temp, uint32_t, HN_FORMS);
    for (uint32_t f = 0; *at && f < HN_FORMS; f++) (*at)[f] = HN_NO_SLOT;
  }
  return *at;
}

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

/* Numbers of f32 in the plan's storage type. Elements lie as to says. */
static const void *narrowed(hn_lowering *l, const void *from, const hone_tensor_desc *to) {
  const int64_t n = hone_desc_bytes(to) / (int64_t)sizeof(uint16_t);
  uint16_t *out = hn_arena_aligned(&l->plan->arena, (size_t)n * sizeof *out, HN_MEM_ALIGN);
  for (int64_t i = 0; out && i < n; i++) {
    float v; /* at any alignment */
    memcpy(&v, (const char *)from + i * (int64_t)sizeof v, sizeof v);
    out[i] = to->dtype == HONE_DTYPE_F16 ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
  }
  l->plan->constant_bytes += (uint64_t)n * sizeof *out;
  return out;
}

uint32_t hn_lower_constant(hn_lowering *l, const hn_value *v, hn_form form) {
  const hone_layout layout =
      form == HN_HOST || !(form & HN_LAST) ? HONE_LAYOUT_ROW_MAJOR : HONE_LAYOUT_CHANNELS_LAST;
  const bool narrow = form != HN_HOST && form & HN_NARROW && v->constant->desc.dtype == HONE_DTYPE_F32 &&
                      hone_desc_known(&v->constant->desc);
  const uint32_t at = (uint32_t)layout | (narrow ? HN_NARROW : 0);
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  if (s[at] != HN_NO_SLOT) return s[at];
  hone_tensor_desc d = v->constant->desc;
  if (hone_desc_known(&d)) hone_desc_set_layout(&d, layout, 0);
  if (narrow) d.dtype = l->plan->storage;
  uint32_t slot = hn_slot_new(l->plan, &d, v, HN_PLACE_CONST);
  if (slot == HN_NO_SLOT) return slot;
  bool as_is = layout == HONE_LAYOUT_ROW_MAJOR || hn_layout_free(&d);
  if ((!as_is || narrow) && !hn_value_make_bytes(v)) return HN_NO_SLOT;
  hone_tensor_desc wide = d;
  wide.dtype = v->constant->desc.dtype;
  const void *data = !as_is                   ? permuted(l, v->constant, &wide)
                     : v->deferred && !narrow ? v->deferred->from
                                              : v->constant->data;
  if (data && narrow) data = narrowed(l, data, &d);
  if (!data) return HN_NO_SLOT;
  l->plan->slots.ptr[slot].constant = data;
  l->plan->slots.ptr[slot].deferred = narrow ? NULL : v->deferred;
  return s[at] = slot;
}

/* A saved plan has no bytes of what is packed. */
bool hn_lower_is_filed(const hn_lowering *l, const hn_value *v) {
  return v && hn_value_was_half(v) != HONE_DTYPE_NONE && (v->deferred || l->plan->saved) &&
         hone_desc_known(&v->constant->desc) && hone_desc_bytes(&v->constant->desc) >= HN_BYTES_LARGE;
}

/* Constants have no slot of the narrow form on a processor, so its place is free. */
uint32_t hn_lower_filed(hn_lowering *l, const hn_value *v) {
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  uint32_t *slot = &s[HN_ROW | HN_NARROW];
  if (*slot != HN_NO_SLOT) return *slot;
  hone_tensor_desc d = v->constant->desc;
  d.dtype = hn_value_was_half(v);
  *slot = hn_slot_new(l->plan, &d, v, HN_PLACE_CONST);
  if (*slot != HN_NO_SLOT)
    l->plan->slots.ptr[*slot].constant = v->deferred ? v->deferred->from : v->constant->data;
  return *slot;
}
