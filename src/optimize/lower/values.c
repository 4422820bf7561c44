/* Where values live: a slot for each form of a value. */
#include "optimize/lower/emit.h"

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

uint32_t hn_lower_constant(hn_lowering *l, const hn_value *v, hn_form form) {
  const hone_layout layout =
      form == HN_HOST || !(form & HN_LAST) ? HONE_LAYOUT_ROW_MAJOR : HONE_LAYOUT_CHANNELS_LAST;
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  if (s[layout] != HN_NO_SLOT) return s[layout];
  hone_tensor_desc d = v->constant->desc;
  if (hone_desc_known(&d)) hone_desc_set_layout(&d, layout, 0);
  uint32_t slot = hn_slot_new(l->plan, &d, v, HN_PLACE_CONST);
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
